"""Every number that bounds something, in one place. The comment says where a number comes from."""

from __future__ import annotations

# Requests
MAX_BODY_BYTES = 256 * 1024
MAX_TASK_CHARS = 32_000
MAX_PROMPT_CHARS = 32_000
MAX_NAME_CHARS = 200  # branches, models, repositories; git itself stops at 255 bytes per component
MAX_URL_CHARS = 2_048
MAX_LIST_ITEMS = 100
MAX_COMMIT_MESSAGE_CHARS = 5_000
MAX_OUTPUT_TOKENS = 200_000
MAX_COST_USD = 1_000
MAX_IDEMPOTENCY_KEY_CHARS = 255
MAX_GITHUB_TOKEN_CHARS = 1_024
MAX_SEQ = 10**12
MAX_PAGE = 200
DEFAULT_PAGE = 50
MAX_WAIT_SECONDS = 25  # HTTP API gives up after 30 s
WAIT_POLL_SECONDS = 0.5

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
HEARTBEAT_SECONDS = 180  # longer than a cold image pull, which also counts
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

MAX_RUN_SECRETS_BYTES = 4_096  # what KMS encrypts in one call
MAX_ERROR_CHARS = 256  # Step Functions refuses a longer name of an error
MAX_CAUSE_CHARS = 32_768
MAX_STATE_BYTES = 256 * 1024  # what Step Functions passes from state to state
MAX_STOP_REASON_CHARS = 255

# Retention by default
RUN_DAYS = 90
IDEMPOTENCY_SECONDS = 24 * 60 * 60

# The wall around commands
WALL_PROCESSES = 4_096
WALL_OPEN_FILES = 4_096
WALL_FILE_BYTES = 4 * 1024**3
WALL_CPU_SECONDS = 2 * MAX_COMMAND_SECONDS  # of one process
EXECUTOR_FRAME_BYTES = 8 * 1024 * 1024  # more than this from inside the wall is not an answer
MAX_WRITE_BYTES = 4 * 1024 * 1024
KILL_SECONDS = 10

# What of one command is sent as events; the log has all of it
OUTPUT_HEAD_BYTES = 64 * 1024
OUTPUT_TAIL_BYTES = 16 * 1024
OUTPUT_EVERY_SECONDS = 0.1
FLUSH_SECONDS = 0.1

# Git and the gate
GIT_SECONDS = 120
GIT_TRANSFER_SECONDS = 900  # clone, fetch, push
MAX_CHECKS = 8
MAX_REPAIRS = 2
CHECK_TAIL_CHARS = 4_000

# What the model is told about the repository at the start
CONTEXT_TREE_PATHS = 300
CONTEXT_FILE_CHARS = 6_000
CONTEXT_CHARS = 24_000
