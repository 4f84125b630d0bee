"""The viewer's actions by noun: parts of the App that need its widgets."""
