"""Controllers: each carries out the commands of one concern, with the App's widgets."""
