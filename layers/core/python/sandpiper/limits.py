"""Every number that bounds something, in one place. The comment says where a number comes from."""

from __future__ import annotations

# Requests
MAX_BODY_BYTES = 256 * 1024
MAX_TASK_CHARS = 32_000
MAX_PROMPT_CHARS = 32_000
MAX_NAME_CHARS = 200  # branches, models, repositories; git itself stops at 255 bytes per component
MAX_USER_CHARS = 255  # OpenID Connect's own; users and organizations are keys of the database
MAX_URL_CHARS = 2_048
MAX_LIST_ITEMS = 100
MAX_HOST_CHARS = 261  # 253 of a name, `*.` and `:65535`
MAX_COMMIT_MESSAGE_CHARS = 5_000
MAX_OUTPUT_TOKENS = 200_000
MAX_COST_USD = 1_000
MAX_TOTAL_TOKENS = 1_000_000_000
MAX_MESSAGE_CHARS = 8_000
MAX_NOTE_CHARS = 2_000  # with the answer to an approval
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
MAX_ATTEMPTS = 3  # that are lost; being resumed costs none
CONTINUE_TURNS = 24  # what "continue" adds to a run that has used up its turns
# How far people may raise the limits of a run after its start
MAX_RAISED_TURNS = 10 * MAX_TURNS
MAX_RAISED_COST_USD = 10 * MAX_COST_USD
MAX_RAISED_TOTAL_TOKENS = 10 * MAX_TOTAL_TOKENS
MAX_RAISED_TIMEOUT_SECONDS = 24 * 60 * 60
DEFAULT_CONCURRENCY = 2

# Quotas of a user by default; the template's parameters say the same
DEFAULT_STARTS_PER_MINUTE = 4
DEFAULT_STARTS_PER_DAY = 25
DEFAULT_MONTHLY_USD = 100
# How high an admin may set them: the times of the starts are one row of at most 400 KB, and so are the slots
MAX_STARTS = 5_000
MAX_MONTHLY_USD = 1_000_000
MAX_CONCURRENCY = 1_000
TOLD_IN_LINE = 25  # of those who wait, how many are told when the line moves; the others when they come so far
TYPICAL_RUNS = 20  # the last ones, whose time says how long the next may take

# The order in which clocks fire: command < run < task token < state machine
PROVISIONING_SECONDS = 300  # a cold Fargate image pull takes about a minute
FINISHING_SECONDS = 300  # gate, push and upload after the agent's time is up
HEARTBEAT_SECONDS = 180  # longer than a cold image pull, which also counts
HEARTBEAT_EVERY_SECONDS = 20
SANDBOX_AWS_ATTEMPTS = 12  # half a minute with botocore's pauses: a run has more to lose than a request
CONTROL_POLL_SECONDS = 0.5
APPROVAL_WAIT_SECONDS = 120  # for an answer, in the sandbox; then the run is suspended
APPROVAL_WAITING_SECONDS = 600  # all such waits of one attempt: they are no working time, but the outer clock runs
APPROVAL_POLL_SECONDS = 0.1
APPROVAL_SHOWN_CHARS = 20_000  # of one field of a call, on the run, whose row may have 400 KB; the log has all of it
APPROVAL_TOLD_CHARS = 2_000  # in the event
DEFAULT_COMMAND_SECONDS = 300
MAX_COMMAND_SECONDS = 1800
CHECK_SECONDS = 900
INTERRUPT_SECONDS = 2  # for code to yield after a Ctrl-C, before its interpreter is killed
BACKGROUND_FIRST_SECONDS = 1  # what a background process says at once, or that it failed, is part of the first answer

# Events
INLINE_EVENT_BYTES = 8 * 1024  # more goes to S3 with a preview inline
PREVIEW_CHARS = 2_000
EVENTS_EVERY_SECONDS = 0.05  # one transaction at most; a turn with an instant model takes a fifth of it
EVENTS_PER_TRANSACTION = 25  # well under DynamoDB's 100 actions and 4 MB
MAX_FRAME_BYTES = 24 * 1024  # API Gateway counts 32 KB frames
OUTPUT_CHUNK_BYTES = 4 * 1024  # one tool_output event
REPLAY_SECONDS = 15  # of one answer to `subscribe`; API Gateway waits 29 s for it
SEND_SECONDS = 3  # for one frame; a connection that takes longer is given up
DELIVERY_SECONDS = 10  # for all frames of one batch to one connection
MAX_HEADS = 100  # of the runs that `subscribed` tells of; they fit into a frame

# What the model is just saying, which is shown and not kept
WORDS_EVERY_SECONDS = 0.25
WORDS_CHARS = 4_000  # at a time; of more than that, the last
WORDS_KEPT_SECONDS = 60 * 60

# One reply of a model. The run's own clock may end it earlier.
MODEL_CONNECT_SECONDS = 10
MODEL_IDLE_SECONDS = 180  # between two pieces of a stream; a long prompt is read for a minute before the first
MODEL_TRY_SECONDS = 900  # 128 K tokens of output come at 150 a second
MODEL_TURN_SECONDS = 1_800  # all tries, pauses and models
MODEL_TRIES = 5  # of one model
MODEL_PAUSE_SECONDS = 1.0  # before the second try; doubles, with chance taking up to half
MODEL_MAX_PAUSE_SECONDS = 60.0  # also for what Retry-After asks
MODEL_FALLBACK_SECONDS = 300  # how long the work stays with a stand-in: as long as a prompt cache
MALFORMED_CHARS = 4_000  # of arguments that are no JSON object, shown back to the model

# What the model sees of one tool result: head and tail of this much together
MODEL_OUTPUT_CHARS = 16_000
MAX_READ_BYTES = 256 * 1024
MAX_SEARCH_CONTEXT = 20
PARALLEL_CALLS = 4  # read-only ones of one turn
MAX_BACKGROUND = 8
INPUT_SECONDS = 5  # for a program to take it

# Of what commands said, for the model to read by range; the log has all of it
KEPT_OUTPUT_BYTES = 64 * 1024**2
KEPT_OUTPUTS_BYTES = 512 * 1024**2
KEPT_OUTPUTS = 64

# The agent's loop
MAX_NUDGES = 2  # replies without a call in a row that are answered by a reminder
MAX_FAILURES_IN_A_ROW = 3  # then a new plan is asked for, and one failure later demanded
REPEATS_WITHOUT_PROGRESS = 3  # of the same call with the same outcome
COMPACT_AT = 0.6  # of what the model takes, by an estimate; the reply needs room, too
COMPACT_TOKENS = 100_000  # or here: longer prompts cost more and help less
KEPT_MESSAGES = 8  # whose tool results stay whole when a conversation is shortened
DIGEST_CHARS = 6_000
PROBLEM_CHARS = 300
MAX_QUESTION_CHARS = 4_000
MAX_FINDINGS = 100
LAST_CALL_SECONDS = 2  # with less of the run's time left, no call of the model is begun

# Pull requests, reviews, and the repository's own CI
GITHUB_FILES = 3_000  # of a pull request; GitHub lists no more
GITHUB_LISTED = 500  # reviews, threads: of one pull request; checks: of one commit
GITHUB_TITLE_CHARS = 256  # of a pull request
GITHUB_BODY_CHARS = 60_000  # of a pull request, a review, a comment; GitHub's own is 65,536
REVIEW_DIFF_BYTES = 4 * 1024 * 1024  # a larger diff can't be looked through; remarks then stand in the review's text
REVIEW_DIFF_TOKENS = 20_000  # of it, for the model
WORK_DIFF_TOKENS = 5_000  # the same, where the pull request is worked on
REVIEW_REMARK_CHARS = 600  # of an earlier remark, for the model
REVIEW_REMARKS_TOLD = 50
RESOLVED_THREADS = 20  # in one run
REBASES = 3  # onto a branch that moves on and on
CI_ROUNDS = 3  # repairs of what the repository's own CI finds
CI_LOG_BYTES = 16 * 1024  # the end of a failing job's log
CI_JOBS_TOLD = 5

# Where a run stands, stored after each step
DATABASE_ROW_BYTES = 400 * 1024  # DynamoDB's own
REPLY_WORTH_SECONDS = 0.02  # a reply that took longer is stored before the next is asked for
REPLY_BYTES = 200 * 1024  # of a reply beside the run's row; a larger one is stored with all the rest
CHECKPOINT_PAUSE_SECONDS = 0.2  # between two states, while replies come at once
CHECKPOINT_RETRY_SECONDS = 0.5
CHECKPOINT_WAIT_SECONDS = 30  # for a store that is slow or away; then the work goes on
CHECKPOINT_PACKS = 16  # of small changes; then one pack of all
FOOTPRINT_FILES = 4_000  # with more, git is quicker to tell which have changed
FOOTPRINT_CHANGED = 100  # so many are read without git, if none is larger
FOOTPRINT_FILE_BYTES = 1024 * 1024
FOOTPRINT_DIRECTORIES = 4_000
SNAPSHOT_BYTES = 4 * 1024**3  # of a workspace before it is packed; S3 takes 5 GiB as one object
SNAPSHOT_LEVEL = 1
SNAPSHOT_SECONDS = 180
STOPPING_SECONDS = 270  # from being told to stop to the process's own end; then it is ended

# AWS
ECS_OVERRIDES_CHARS = 8_192
PRESIGN_SECONDS = 900
TICKET_SECONDS = 60
CONNECTION_SECONDS = 2 * 60 * 60  # API Gateway closes a socket after two hours
MAX_CONNECTIONS = 20  # open sockets of one user
TICKETS_PER_MINUTE = 120  # of one user: a client that is cut asks for one each time

MAX_RUN_SECRETS_BYTES = 4_096  # what KMS encrypts in one call
MAX_ERROR_CHARS = 256  # Step Functions refuses a longer name of an error
MAX_CAUSE_CHARS = 32_768
MAX_STATE_BYTES = 256 * 1024  # what Step Functions passes from state to state
MAX_STOP_REASON_CHARS = 255

# GitHub
GITHUB_CONNECT_SECONDS = 5
GITHUB_READ_SECONDS = 20
GITHUB_PAUSES_SECONDS = (1.0, 3.0, 10.0)  # between tries of what may be repeated
GITHUB_MAX_WAIT_SECONDS = 60  # a longer rate limit is told instead of waited for
GITHUB_SECONDARY_SECONDS = 60  # what GitHub asks for where its second rate limit says no number
GITHUB_PAGE = 100  # the most that GitHub lists at once
GITHUB_JWT_SECONDS = 540  # of the App; GitHub takes ten minutes at most, by its own clock
GITHUB_CLOCK_DRIFT_SECONDS = 60
GITHUB_MINTING_SECONDS = 130  # the function that mints has 120, and waits for GitHub in them
GITHUB_NEW_TOKEN_SECONDS = 15  # so long GitHub may not know everywhere what it has given out
GITHUB_TOKEN_SPARE_SECONDS = 300  # a token is replaced so long before it runs out
STATUS_COMMENT_SECONDS = 5  # between two edits
STATUS_COMMENT_CHARS = 60_000  # GitHub takes 65,536
STATUS_DIFF_CHARS = 30_000
STATUS_PROSE_CHARS = 6_000
STATUS_LINE_CHARS = 300
STATUS_ROWS = 30  # of the plan, the gate, the suites
MAX_WEBHOOK_BYTES = 25 * 1024 * 1024  # GitHub's own
MAX_DELIVERY_BYTES = 200 * 1024  # handed on; a function that is called without waiting takes 256 KB
GITHUB_CONTEXT_CHARS = 40_000  # of a conversation, for the model
GITHUB_QUOTE_CHARS = 5  # of a quote by which a reply is known to be one to us
GITHUB_ENTRY_CHARS = 8_000  # of one comment in it
GITHUB_COMMENTS = 100  # of an issue that are read, the newest last
GITHUB_HELD_SECONDS = 120  # nobody else works on the same delivery or status comment meanwhile
GITHUB_DELIVERY_SECONDS = 3 * 24 * 60 * 60  # how long GitHub lets a delivery be sent again
GITHUB_SWEEP_DELIVERIES = 1_000  # looked at in one sweep
GITHUB_REDELIVERIES = 5  # of one delivery, at most
GITHUB_SWEEP_SECONDS = 15 * 60  # from sweep to sweep
GITHUB_SECRET_SECONDS = 300  # a changed secret is taken up after so long
MAX_GITHUB_COMMENT_CHARS = 65_536  # GitHub's own, of comments and of the text of a pull request
MAX_PR_TITLE_CHARS = 256  # GitHub's own
GITHUB_COMMIT_WAIT_SECONDS = 10  # all pauses of one request: HTTP API gives up after 30 s

# Retention by default
RUN_DAYS = 90
IDEMPOTENCY_SECONDS = 24 * 60 * 60

# The wall around commands
WALL_PROCESSES = 4_096
WALL_OPEN_FILES = 4_096
WALL_FILE_BYTES = 4 * 1024**3
WALL_CPU_SECONDS = 2 * MAX_COMMAND_SECONDS  # of one process
TERMINAL_ROWS, TERMINAL_COLUMNS = 40, 120  # of a command that asks for a terminal
WALL_TEMPORARY_BYTES = 2 * 1024**3  # of each place that is kept in memory
WALL_DISK_BYTES = 12 * 1024**3  # workspace, home and temporary files; Fargate has 20 GB, of which the image takes one
WALL_DISK_RESERVE_BYTES = 512 * 1024**2  # what commands leave to the supervisor's log, diff and git directory
WALL_SPARE_FILES = 10_000
WALL_MEMORY_RESERVE_BYTES = 256 * 1024**2  # what commands leave to the supervisor
WALL_MEMORY_LOOK_SECONDS = 0.1  # in which a program takes a few hundred MB at most
WALL_MEMORY_STEP_BYTES = 32 * 1024**2
WALL_DISK_LOOK_SECONDS = 0.5
WALL_DISK_STEP_BYTES = 64 * 1024**2  # as long as less than this has changed, files are not counted again
COMMAND_OUTPUT_BYTES = 4 * 1024**3  # logged part by part; what nobody reads to its end should not be stored without one
EXECUTOR_FRAME_BYTES = 8 * 1024 * 1024  # more than this from inside the wall is not an answer
MAX_WRITE_BYTES = 4 * 1024 * 1024
MAX_FILE_SIZE = 2**63 - 1
WALL_ERROR_CHARS = 1_000
KILL_SECONDS = 10

# The way out of the wall
EGRESS_CONNECTIONS = 64  # npm alone opens about 15
EGRESS_HEAD_BYTES = 16 * 1024
EGRESS_HEAD_SECONDS = 10
EGRESS_POLICY_SECONDS = 30  # to ask the package managers where they go
EGRESS_DIAL_SECONDS = 15
EGRESS_IDLE_SECONDS = 300
EGRESS_TOTAL_SECONDS = 2 * MAX_COMMAND_SECONDS
EGRESS_REPORTED = 100  # refusals that become events; the model can think of any number of names
GIT_RELAY_REQUEST_BYTES = 8 * 1024 * 1024  # what a fetch says it has and wants
GIT_RELAY_CONNECTIONS = 8

# What of one command is sent as events; the log has all of it
OUTPUT_HEAD_BYTES = 64 * 1024
OUTPUT_TAIL_BYTES = 16 * 1024
OUTPUT_EVERY_SECONDS = 0.1
FLUSH_SECONDS = 0.1

# The log of a run, which is stored in parts while it grows
LOG_PART_SECONDS = 1.0  # so much is lost with a sandbox that is killed
LOG_PART_BYTES = 1024**2
LOG_BUFFER_BYTES = 8 * 1024**2  # then commands wait until the store has taken some
LOG_WAIT_SECONDS = 5  # for one piece of output, so that a store that stays away can't keep a run from ending
LOG_HELD_CHARS = 4 * 1024**2  # behind an event that has no number yet; then it goes without one
LOG_READERS = 16  # parts that are read at once when they are put together
UPLOAD_PART_BYTES = 8 * 1024**2  # S3 takes 5 MB at least, and 10,000 of them

# Git and the gate
GIT_SECONDS = 120
GIT_TRANSFER_SECONDS = 900  # clone, fetch, push
MAX_CHECKS = 8
MAX_REPAIRS = 2
CHECK_TAIL_CHARS = 4_000
MAX_CHECK_SECONDS = MAX_COMMAND_SECONDS
MAX_REPORT_BYTES = 4 * 1024 * 1024  # of one check, all its report files together
MAX_REPORT_FILES = 200
MAX_REPORT_TEXT_CHARS = 2 * 1024 * 1024  # of what a check prints, head and tail, looked through for test results
MAX_FAILING_TESTS = 2_000  # compared with those before
SHOWN_FAILING_TESTS = 50  # of one check, in events and results
MAX_TEST_NAME_CHARS = 300
MAX_REPORT_LINE_CHARS = 1_000  # of what a runner prints; patterns look no further
DETECT_FILES = 40  # of one kind, looked into to find out how a repository is tested
MAX_PRD_FILES = 10
MAX_PRD_BYTES = 1024 * 1024
STORY_CHARS = 4_000  # of the story's text, for the model
PROGRESS_TASK_CHARS = 200

# What of the repository is fetched: history with its contents while that is small, else what the last commits need
BIG_FILE_BYTES = 8 * 1024 * 1024  # from here on git streams a file instead of holding it in memory
HISTORY_FILE_BYTES = 1024 * 1024  # larger ones come only if the base or the last commits hold them
HISTORY_PACK_BYTES = 32 * 1024 * 1024
HISTORY_SECONDS = 60
RECENT_COMMITS = (100, 10, 2)  # the most of these whose contents are few enough
RECENT_FILES = 5_000
MAX_OPTIONS_BYTES = 64 * 1024  # .sandpiper.yml; PyYAML reads about 100 KB in a second
MAX_SHOWN_BYTES = 4 * 1024 * 1024  # any other file of the repository that is read by us
MAX_PATCH_FILE_BYTES = 32 * 1024 * 1024  # a larger one is named in the diff without its content

# What the model is told about the repository at the start, in tokens of about 4 characters
CHARS_PER_TOKEN = 4
CONTEXT_TOKENS = 6_000
CONTEXT_TREE_TOKENS = 1_000
CONTEXT_TREE_LINES = 150
CONTEXT_INSTRUCTION_TOKENS = 1_500
CONTEXT_PRD_TOKENS = 1_000
CONTEXT_NAMED_TOKENS = 1_000
CONTEXT_FOUND_TOKENS = 500
CONTEXT_GENERAL_TOKENS = 500  # README, manifests
CONTEXT_CONFIG_TOKENS = 250
CONTEXT_NAMED_FILES = 8
CONTEXT_FOUND_FILES = 5
CONTEXT_TERMS = 16
CONTEXT_READ_BYTES = 512 * 1024  # a larger file is not looked into
CONTEXT_SEARCH_FILE_BYTES = 128 * 1024
CONTEXT_SEARCH_BYTES = 64 * 1024 * 1024  # about a second
CONTEXT_TOLD_PATHS = 100  # in the event; the text names fewer
