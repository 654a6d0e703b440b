"""Every number that bounds something, in one place. The comment says where a number comes from."""

from __future__ import annotations

# Requests
MAX_BODY_BYTES = 256 * 1024
MAX_TASK_CHARS = 32_000
MAX_PAGE = 200
MAX_WAIT_SECONDS = 25  # HTTP API gives up after 30 s

# A run
DEFAULT_TIMEOUT_SECONDS = 900
MIN_TIMEOUT_SECONDS = 30
MAX_TIMEOUT_SECONDS = 7200
DEFAULT_MAX_TURNS = 48
MAX_TURNS = 500
MAX_ATTEMPTS = 3
DEFAULT_CONCURRENCY = 2

# The order in which clocks fire: command < run < task token < state machine
PROVISIONING_SECONDS = 300  # a cold Fargate image pull takes about a minute
FINISHING_SECONDS = 300  # gate, push and upload after the agent's time is up
HEARTBEAT_SECONDS = 90
HEARTBEAT_EVERY_SECONDS = 20
CONTROL_POLL_SECONDS = 0.5
DEFAULT_COMMAND_SECONDS = 300
MAX_COMMAND_SECONDS = 1800
CHECK_SECONDS = 900

# Events
INLINE_EVENT_BYTES = 8 * 1024  # more goes to S3 with a preview inline
PREVIEW_CHARS = 2_000
EVENTS_PER_TRANSACTION = 25  # well under DynamoDB's 100 actions and 4 MB
MAX_FRAME_BYTES = 24 * 1024  # API Gateway counts 32 KB frames
OUTPUT_CHUNK_BYTES = 4 * 1024  # one tool_output event

# What the model sees of one tool result: head and tail of this much together
MODEL_OUTPUT_CHARS = 16_000
MAX_READ_BYTES = 256 * 1024

# AWS
ECS_OVERRIDES_CHARS = 8_192
PRESIGN_SECONDS = 900
TICKET_SECONDS = 60
CONNECTION_SECONDS = 2 * 60 * 60  # API Gateway closes a socket after two hours

# Retention by default
RUN_DAYS = 90
IDEMPOTENCY_SECONDS = 24 * 60 * 60
