"""The command line: `python -m localplatform prepare|up|down [api|node|brokers|operator]`."""

import argparse
import sys

from confluent_kafka import KafkaException

from localplatform import kind, parts, settings
from localplatform.console import PlatformError, SettingError


def main() -> int:
    parser = argparse.ArgumentParser(prog="localplatform", description=__doc__)
    parser.add_argument("action", choices=["prepare", "up", "down"])
    parser.add_argument("part", choices=parts.PARTS, nargs="?", help="with what it needs; default: everything")
    chosen = parser.parse_args()
    platform = kind if kind.chosen() else parts
    actions = {"prepare": platform.prepare, "up": platform.up, "down": platform.down}
    try:
        settings.check()
        actions[chosen.action](chosen.part)
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingError) else 1
    except (KafkaException, TimeoutError) as error:
        print(f"error: the brokers do not answer as they should ({error}); run it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; `make up` goes on from here, `make down` removes what is there", file=sys.stderr)
        return 130
    return 0


sys.exit(main())
