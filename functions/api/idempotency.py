"""`Idempotency-Key`, by Powertools: one key of one owner does a thing once, however often it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)

from sandpiper import limits
from sandpiper.errors import Conflict, InProgress, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer
    from aws_lambda_powertools.utilities.typing import LambdaContext


class Idempotency:
    def __init__(self, store: BasePersistenceLayer) -> None:
        self._store = store
        self._config = IdempotencyConfig(
            event_key_jmespath="key",
            payload_validation_jmespath="body",
            expires_after_seconds=limits.IDEMPOTENCY_SECONDS,
            hash_function="sha256",
        )

    def once(
        self,
        *,
        owner: str,
        key: str,
        body: Mapping[str, Any],
        start: Callable[[], str],
        context: LambdaContext,
        operation: str = "execute",
    ) -> str:
        """What `start` gives, or gave the first time; a key is good for one operation.

        Raises Conflict, InProgress, Unavailable.
        """
        self._config.register_lambda_context(context)

        def start_once(*, request: Mapping[str, Any]) -> str:  # noqa: ARG001 - Powertools reads it by name
            return start()

        guarded = idempotent_function(
            start_once,
            data_keyword_argument="request",
            persistence_store=self._store,
            config=self._config,
            key_prefix=operation,
        )
        try:
            given: str = guarded(request={"key": [owner, key], "body": body})
        except IdempotencyValidationError as error:
            raise Conflict("This Idempotency-Key was used with another body.") from error
        except (IdempotencyAlreadyInProgressError, IdempotencyInconsistentStateError) as error:
            raise InProgress("A request with this Idempotency-Key is still being worked on.") from error
        except IdempotencyPersistenceLayerError as error:
            raise Unavailable("The request could not be recorded. Try again in a moment.") from error
        return given
