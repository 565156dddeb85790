"""Pages for people: one HTML file each, which opens without a network. All that comes from outside is escaped."""
