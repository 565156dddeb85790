"""A real single-node Kubernetes, Kafka brokers and the operator on one Debian machine, without Docker.

`python -m localplatform up` starts everything, `down` stops it; the tests import the parts they need.
Everything here can be killed at any time: what is built is published by a rename, what runs is recorded
by process id and start time, and the next start cleans up whatever an earlier one left behind.
"""
