"""Files that lie elsewhere, by URL: object storage, web servers, hosts that are reached by SSH."""
