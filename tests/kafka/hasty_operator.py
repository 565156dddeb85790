"""The operator, but for one wait: five minutes after a lost broker has come back are a few seconds."""

import runpy

from reassign.core.automation import policy_run

if __name__ == "__main__":
    policy_run.RETURNED_SECONDS = 5
    runpy.run_module("reassign.controller", run_name="__main__")
