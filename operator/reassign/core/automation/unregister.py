"""The end of a decommission: brokers that are empty, and which of them are unregistered.

UnregisterBroker is recorded before it is sent, and sent again only when the one before cannot land any more.
"""

from __future__ import annotations

from dataclasses import replace

from reassign.api.broker_decommission import DecommissionState, UnregisterWish
from reassign.core.automation.case import DecommissionCase, in_doubt
from reassign.core.automation.conditions import Standing, broker_state
from reassign.core.automation.model import BrokersSeen, DecommissionDecision, UnregisterBroker
from reassign.core.automation.timers import whole
from reassign.core.automation.view import View
from reassign.errors import Reason
from reassign.text import named_brokers

DOWN_SECONDS = 60
"""How long a broker is down before it is unregistered."""


def decided_empty(view: View, seen: BrokersSeen) -> DecommissionDecision:
    """Say that the brokers can be stopped, and why one that is down is not unregistered though that is wished for."""
    case = view.case
    it = case.it
    named = named_brokers(view.brokers, "is")
    standing = Standing("Empty", f"{named} empty, and can be stopped", empty=True)
    down = [b for b, judged in view.brokers.items() if broker_state(it, judged) is DecommissionState.DOWN]
    if it.spec.unregister is UnregisterWish.NEVER or not down:
        return view.decided([], standing)
    if not seen.lists_fenced:
        message = f"{named} empty; Kafka before 4.0 does not say which brokers are down, so none is unregistered"
        return view.decided([], standing._replace(reason="NotSupported", message=message))
    refusals = {broker: why for broker in down if (why := seen.refusals.get(broker))}
    for broker, why in refusals.items():
        message = f"{named} empty; broker {broker} could not be unregistered: {why.message}; it is tried again"
        return view.decided([], standing._replace(reason=why.reason, message=message))
    sent = [broker for broker in down if in_doubt(it, broker, case.now.time)]
    if sent or view.after:
        return view.decided([], standing._replace(message=f"{named} empty; one that is down is being unregistered"))
    if voters := [broker for broker in down if broker in (seen.voters or ())]:
        message = f"{named} empty; {named_brokers(voters)} cannot be unregistered as a voter of the controller quorum"
        return view.decided([], standing._replace(reason="QuorumVoter", message=message))
    if seen.voters is None:
        message = f"{named} empty; the voters of the controller quorum are not known, so none is unregistered"
        return view.decided([], standing._replace(reason=Reason.NOT_OBSERVED, message=message))
    if unseen := [broker for broker in down if not view.brokers[broker].emptiness.seen_up]:
        message = f"{named} empty; {named_brokers(unseen)} was never seen empty while up, so it is not unregistered"
        return view.decided([], standing._replace(reason=Reason.NOT_OBSERVED, message=message))
    held = _held(case)
    then = f"not unregistered {held}" if held else f"unregistered once it has been so for {DOWN_SECONDS} s"
    message = f"{named} empty; {named_brokers(down, 'is')} down, and {then}"
    return view.decided([], standing._replace(message=message))


def _held(case: DecommissionCase) -> str | None:
    """Say what keeps every broker from being unregistered."""
    if not case.it.approved:
        return "without an approval"
    if case.it.spec.suspend:
        return "while spec.suspend is true"
    return f"while execution of the KafkaCluster is {case.cluster.execution}" if case.braked else None


def unregistering(view: View, seen: BrokersSeen) -> View:
    """Return the view in which each broker that is empty and down is unregistered, whatever the others are."""
    case = view.case
    it = case.it
    if it.spec.unregister is UnregisterWish.NEVER or not seen.lists_fenced or _held(case):
        return view
    due = [broker for broker in view.brokers if _may_be_unregistered(view, seen, broker)]
    update = {"unregister_sent_at": whole(case.now.time), "unregister_via": seen.via}
    brokers = (known.model_copy(update=update) if known.id in due else known for known in view.record.brokers)
    view = view.with_record(brokers=tuple(brokers))
    return replace(view, after=[UnregisterBroker(broker, seen.via) for broker in due])


def _may_be_unregistered(view: View, seen: BrokersSeen, broker: int) -> bool:
    """Whether a broker has been empty and down for a minute, is no voter, and nothing that was sent may still land."""
    judged, now = view.brokers[broker], view.case.now.time
    long_enough = judged.timer is not None and judged.timer.seconds >= DOWN_SECONDS
    no_voter = seen.voters is not None and broker not in seen.voters
    waits = in_doubt(view.case.it, broker, now)
    down = judged.seen.registered and judged.seen.fenced and judged.emptiness.seen_up
    return down and long_enough and no_voter and not waits
