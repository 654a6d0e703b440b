// The Node behind `run_code`. It runs as B, given to B's node as text; see python_driver.py for the protocol.
'use strict';

const { Socket } = require('node:net');
const { createInterface } = require('node:readline');
const { start } = require('node:repl');
const { PassThrough } = require('node:stream');
const { inspect } = require('node:util');

const requests = new Socket({ fd: 3, writable: false }); // a file stream would hold up the end of the process
const INTERRUPTED = 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
const OWN_FRAMES = /\n    at .*\(node:(?:vm|internal\/vm|repl):/;
const write = process.stdout.write.bind(process.stdout);

// A prompt that nobody types at: it brings top-level await, `require` from here, and an end by SIGINT.
const prompt = start({
  input: new PassThrough(), output: new PassThrough(), prompt: '', terminal: false, useGlobal: true, breakEvalOnSigint: true,
});
const evaluate = prompt.eval;
let settle = null; // how the code that is running ends

function tell(problem) {
  const error = problem?.err ?? problem; // an unfinished program comes wrapped
  const words = error instanceof Error ? String(error.stack ?? error).split(OWN_FRAMES)[0] : `Uncaught ${inspect(error)}`;
  process.stderr.write(`${words}\n`);
  return error?.code === INTERRUPTED ? 'interrupted' : 'error';
}

function perform(code) {
  return new Promise((resolve) => {
    settle = resolve;
    process.off('SIGINT', interrupt); // while code runs without waiting, the prompt watches for it, if nobody else does
    evaluate.call(prompt, `${code}\n`, prompt.context, 'call', (problem, value) => {
      if (!problem && value !== undefined) write(`${inspect(value)}\n`);
      resolve(problem ? tell(problem) : 'ok');
    });
    process.on('SIGINT', interrupt);
  });
}

function interrupt() {
  if (settle) prompt.emit('SIGINT');
}

// The prompt hands an error of the code to its domain; one that was thrown later, by nobody who waits for it, is marked.
function fail(error) {
  const ending = tell(error);
  if (settle && !error?.domainThrown) settle(ending);
}

async function serve() {
  for await (const line of createInterface({ input: requests })) {
    const { mark, code } = JSON.parse(line);
    const ending = await perform(code);
    settle = null;
    write(`\0${mark} ${ending}\n`);
  }
  process.exit(0);
}

prompt._domain?.removeAllListeners('error').on('error', fail);
process.on('uncaughtException', tell);
process.on('unhandledRejection', tell);
process.on('SIGINT', interrupt);
serve();
