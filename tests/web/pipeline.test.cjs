// The pipeline's function in Node: the module is the argument of the test's program.
const assert = require("node:assert/strict");
const test = require("node:test");

const { evaluate } = require(process.env.HORCHESTRA_WEB);

const pipeline = (spec) =>
  JSON.stringify({
    apiVersion: "examples.com/v1",
    kind: "Pipeline",
    metadata: { name: "p", namespace: "default" },
    spec,
  });

const job = (step, type) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: `p-${step}`, namespace: "default" },
  status: { conditions: [{ type, status: "True", reason: "Because", message: "it is so" }] },
});

const names = (answer) => JSON.parse(answer).stages.flat().map((o) => o.metadata.name);
const message = (answer) => JSON.stringify(JSON.parse(answer));

test("without any job there is the first", () => {
  const answer = evaluate(pipeline({ image: "busybox" }));
  assert.deepEqual(names(answer), ["p-one"]);
  assert.match(message(answer), /running job p-one/);
});

test("a job that has succeeded is followed by the next", () => {
  const answer = evaluate(pipeline({ image: "busybox" }), JSON.stringify([job("one", "Complete")]));
  assert.deepEqual(names(answer), ["p-one", "p-two"]);
});

test("all that have succeeded are the end", () => {
  const jobs = ["one", "two", "three"].map((step) => job(step, "Complete"));
  assert.match(message(evaluate(pipeline({ image: "busybox" }), JSON.stringify(jobs))), /all jobs have completed/);
});

test("a job that has failed stops it with the reason", () => {
  const answer = evaluate(pipeline({ image: "busybox" }), JSON.stringify([job("one", "Failed")]));
  assert.deepEqual(names(answer), ["p-one"]);
  assert.match(message(answer), /stopped at p-one: .*Because/);
});

test("bad input is an exception that names it", () => {
  assert.throws(() => evaluate(""), /stdin/);
  assert.throws(() => evaluate(pipeline({ image: 7 })), /Pipeline.*:p: .*image|expected a string/);
  assert.throws(() => evaluate(pipeline({ image: "x" }), "[{}]"), /apiVersion/);
});
