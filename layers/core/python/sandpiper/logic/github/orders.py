"""What becomes of a delivery. Whatever is done here may be done again: GitHub and AWS both repeat.

| step | what can fail | what happens then |
|---|---|---|
| hold the delivery | somebody else has it, or did it | nothing more |
| ask GitHub | 5xx, a rate limit | the hold is given back, the call is repeated by AWS, later by the sweep |
| ask GitHub | the App is gone, suspended | logged; there is nobody to tell |
| start the run | a quota is used up | said in words |
| start the run | it is there already | that one is meant; its thread and its status comment are seen to |
| answer in words | only the answer is lost | said twice at worst, once a minute |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import Conflict, NotFound, QuotaExceeded
from sandpiper.logic.control import Answer
from sandpiper.logic.github.deliveries import COMMITTING, STARTING, owner_of, run_id_of
from sandpiper.logic.github.grammar import is_quote_of, order_of
from sandpiper.logic.github.places import numbers_of, place_name
from sandpiper.logic.github.specs import refusal, spec_of
from sandpiper.models.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.github_ports import HeadWatch, Holds, Hub, Topics
    from sandpiper.logic.control import Controls
    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.logic.github.places import Place
    from sandpiper.logic.repos import RepoRules
    from sandpiper.logic.start_run import Starter
    from sandpiper.models.github import Topic
    from sandpiper.models.run import ApprovalRequest, Run
    from sandpiper.ports import Runs

_NOBODY = "There is no run here that this could be meant for; `/implement`, `/fix`, `/review` and `/test` start one."
_APPROVAL_ID = re.compile(r"`?(ap-\w+)`?", re.IGNORECASE)
_WORDLESS = frozenset({"cancel", "status", "approve"})  # what else is said with them goes nowhere
_SEEN, _DONE, _REFUSED = "eyes", "+1", "confused"


@dataclass(frozen=True)
class Orders:
    hub_of: Callable[[Place], Hub]
    runs: Runs
    starter: Starter
    controls: Controls
    topics: Topics
    watch: HeadWatch
    holds: Holds
    rules: RepoRules
    tell: Callable[[str], None]  # what its status comment is to say, by run id

    def obey(self, delivery: Delivery) -> str:
        """What was done, in a word. Raises GitHubError, Unavailable: then it may be tried again."""
        hold = f"delivery#{delivery.id}"
        if self.holds.take(hold, seconds=limits.GITHUB_HELD_SECONDS) is None:
            return "known"
        done = False
        try:
            did = self._obey(delivery)
            done = True
            return did
        finally:
            self.holds.release(hold, done=done)

    def _obey(self, delivery: Delivery) -> str:
        hub = self.hub_of(delivery)
        if delivery.verb == "checks":
            return self._wake(delivery, hub)
        if delivery.quoted and not self._is_to_us(delivery, hub):
            return "not to us"
        if not hub.may_write(delivery.sender):
            # No words: whoever may not write here could have us write as much as they like.
            hub.react(delivery, _REFUSED)
            return "refused"
        return self._start(delivery, hub) if delivery.verb in STARTING else self._steer(delivery, hub)

    def _is_to_us(self, delivery: Delivery, hub: Hub) -> bool:
        """People quote each other all day: only what the status comment of a run at work says is ours."""
        run = self._run_here(delivery)
        if run is None or run.is_terminal or run.status_comment_id is None:
            return False
        return is_quote_of(delivery.quoted, hub.comment_text(run.status_comment_id))

    def _start(self, delivery: Delivery, hub: Hub) -> str:
        hub.react(delivery, _SEEN)
        run = self._earlier(delivery)
        if run is None:
            topic = hub.topic(delivery.number, is_pull=delivery.is_pull)
            if why := refusal(delivery, topic):
                return self._refuse(delivery, hub, why)
            try:
                run = self._start_once(delivery, topic, hub)
            except QuotaExceeded as error:
                return self._refuse(delivery, hub, error.message)
        self.topics.note(run)
        self.tell(run.run_id)
        return run.run_id

    def _earlier(self, delivery: Delivery) -> Run | None:
        try:
            run = self.runs.get(run_id_of(delivery))
        except NotFound:
            return None
        return None if run.status == "failed" and run.attempt == 0 else run

    def _start_once(self, delivery: Delivery, topic: Topic, hub: Hub) -> Run:
        said = hub.said_on(topic, delivery)
        author = hub.author() if delivery.verb in COMMITTING else None
        spec = spec_of(delivery, topic, said, self.rules, author=author)
        owner = owner_of(delivery.sender)
        identity = Identity(user=owner, org=owner_of(delivery.repository.partition("/")[0]))
        try:
            return self.starter.start(spec, identity, {}, key=delivery.id)
        except Conflict:
            # It was started a moment ago, and the conversation has gone on since.
            return self.runs.get(run_id_of(delivery))

    def _steer(self, delivery: Delivery, hub: Hub) -> str:
        run = self._run_here(delivery)
        if run is None:
            return self._refuse(delivery, hub, _NOBODY)
        try:
            self._pass_on(delivery, run)
        except (Conflict, NotFound) as error:
            return self._refuse(delivery, hub, error.message)
        hub.react(delivery, _DONE)
        if delivery.verb in _WORDLESS and (more := order_of(delivery.text)):
            why = f"One comment, one command: `/{more.verb}` was not done. Write it in a comment of its own."
            hub.comment(delivery.number, f"@{delivery.sender} {why}")
        self.tell(run.run_id)
        return delivery.verb

    def _run_here(self, delivery: Delivery) -> Run | None:
        """A run that a reply names counts only where it belongs."""
        run_id = delivery.run_id or self.topics.latest(place_name(delivery), delivery.number)
        try:
            run = self.runs.get(run_id) if run_id else None
        except NotFound:
            return None
        origin = run.spec.github if run else None
        is_here = run and origin and place_name(origin) == place_name(delivery) and delivery.number in numbers_of(run)
        return run if is_here else None

    def _pass_on(self, delivery: Delivery, run: Run) -> None:
        identity = Identity(user=owner_of(delivery.sender), acts_for=run.owner)
        match delivery.verb:
            case "cancel":
                self.controls.cancel(run.run_id, identity)
            case "say":
                text = delivery.text[: limits.MAX_MESSAGE_CHARS]
                self.controls.say(run.run_id, _required(text, delivery), identity, key=delivery.id)
            case "approve":
                approval_id, _ = _approval(run, delivery)
                self.controls.answer(run.run_id, approval_id, Answer("approve"), identity)
            case "reject":
                approval_id, note = _approval(run, delivery)
                self.controls.answer(run.run_id, approval_id, Answer("reject", note or None), identity)

    def _wake(self, delivery: Delivery, hub: Hub) -> str:
        run_id = self.watch.watcher(place_name(delivery), delivery.head_sha)
        if run_id is None or not hub.checks_are_complete(delivery.head_sha):
            return "nobody waits"
        return "woken" if self.controls.ci_completed(run_id, key=delivery.id) else "nobody waits"

    @staticmethod
    def _refuse(delivery: Delivery, hub: Hub, why: str) -> str:
        hub.react(delivery, _REFUSED)
        hub.comment(delivery.number, f"@{delivery.sender} {why}")
        return "refused"


def _approval(run: Run, delivery: Delivery) -> tuple[str, str]:
    """The id that was named, or that of the only thing it asks; and what else was said."""
    if run.approval is None:
        raise Conflict(f"Run {run.run_id} asks for no approval now.")
    named = _APPROVAL_ID.match(delivery.text)
    if named is None and _is_older(delivery, run.approval):
        name = f"`/{delivery.verb} {run.approval.id}`"
        raise Conflict(f"Run {run.run_id} has asked for something else since you wrote: {name} if you mean that.")
    note = delivery.text[named.end() if named else 0 :].strip()[: limits.MAX_NOTE_CHARS]
    return named[1].lower() if named else run.approval.id, note


def _is_older(delivery: Delivery, asked: ApprovalRequest) -> bool:
    """Nobody says yes to what they have not seen. GitHub tells no fractions of a second."""
    said_at = datetime.fromisoformat(delivery.said_at) if delivery.said_at else None
    return said_at is not None and said_at < asked.requested_at.replace(microsecond=0)


def _required(text: str, delivery: Delivery) -> str:
    if not text:
        quotes = "Your reply only quotes me: write your answer below the quote."
        raise Conflict(quotes if delivery.is_reply else "`/say` needs words behind it.")
    return text
