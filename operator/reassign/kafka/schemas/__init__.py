"""Schemas of requests that kafka-python does not have, in the form of Kafka's own message files."""
