"""Published methods that the papers compare with and that no user of the library needs."""
