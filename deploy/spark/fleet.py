"""What spark-submit runs: `kubectl kafka-reassign`, whose session is then the one that spark-submit was told of."""

from reassign.cli.app import main

main()
