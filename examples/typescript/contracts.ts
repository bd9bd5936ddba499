// Asks mcp-verdict before each call, and calls nothing that is not what was pinned:
//   node dist/contracts.js http://127.0.0.1:8000/mcp [http://127.0.0.1:55679]
// The first URL is ../python/changing_server.py, the second the check API of a mcp-verdict that runs
// with `contracts.mode: pin` and gets this program's spans. What happened is printed, one JSON object a
// line. The spans that say what this client holds are its own; telemetry.ts adds those of a package.
import { provider } from "./telemetry.js";
import { Span, SpanKind, trace } from "@opentelemetry/api";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Tool } from "@modelcontextprotocol/sdk/types.js";

interface Answer {
  answer: "proceed" | "halt";
  reason: string;
  grade: string | null;
  changes: { pointer: string; kind: string; grade: string }[];
}

/** The tool is not the one that was pinned; `answer` says where it differs. */
class Halted extends Error {
  constructor(readonly answer: Answer) {
    super(answer.reason);
  }
}

/** A client that lists before it calls, asks whether it may, and says in its spans what it holds. */
class Guard {
  private readonly tracer = trace.getTracer("library-agent");

  constructor(
    private readonly client: Client,
    private readonly server: URL,
    private readonly api: string,
  ) {}

  private span<T>(method: string, attributes: Record<string, string>, work: (span: Span) => Promise<T>): Promise<T> {
    const address = { "server.address": this.server.hostname, "server.port": Number(this.server.port) };
    const options = { kind: SpanKind.CLIENT, attributes: { "mcp.method.name": method, ...address, ...attributes } };
    return this.tracer.startActiveSpan(method, options, (span) => work(span).finally(() => span.end()));
  }

  /** The tools as the server lists them now; the span tells mcp-verdict. */
  tools(): Promise<Tool[]> {
    return this.span("tools/list", {}, async (span) => {
      const found: Tool[] = [];
      let cursor: string | undefined;
      do {
        const page = await this.client.listTools(cursor === undefined ? {} : { cursor });
        found.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      span.setAttribute("mcp_evidence.list.definitions", JSON.stringify(found));
      span.setAttribute("mcp_evidence.list.last_page", true);
      return found;
    });
  }

  async check(name: string): Promise<Answer> {
    const definition = (await this.tools()).find((tool) => tool.name === name);
    const response = await fetch(this.api + "/v1/contracts/check", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ server: this.server.host, tool: name, definition }),
    });
    if (!response.ok) {
      throw new Error(`the check was answered with ${response.status}: ${await response.text()}`);
    }
    return (await response.json()) as Answer;
  }

  /** Calls the tool if it is what was pinned, or nobody pinned it yet. */
  async call(name: string, args: Record<string, unknown>): Promise<string> {
    const answer = await this.check(name);
    if (answer.answer !== "proceed") {
      throw new Halted(answer);
    }
    await this.unguarded(name, args);
    return answer.reason;
  }

  unguarded(name: string, args: Record<string, unknown>): Promise<void> {
    const attributes = { "gen_ai.tool.name": name, "gen_ai.tool.call.arguments": JSON.stringify(args) };
    return this.span("tools/call", attributes, async (span) => {
      const result = await this.client.callTool({ name, arguments: args });
      span.setAttribute("mcp_evidence.call.is_error", result.isError === true);
    });
  }
}

function say(step: string, seen: Record<string, unknown>): void {
  console.log(JSON.stringify({ step, ...seen }));
}

async function attempt(guard: Guard, step: string): Promise<void> {
  try {
    say(step, { halted: false, reason: await guard.call("search", { query: "rain" }) });
  } catch (halt) {
    if (!(halt instanceof Halted)) {
      throw halt;
    }
    const { reason, grade, changes } = halt.answer;
    say(step, { halted: true, reason, grade, pointers: changes.map((change) => change.pointer) });
  }
}

/** A pin stands when the span of the listing has arrived. */
async function untilPinned(guard: Guard, milliseconds = 30_000): Promise<void> {
  const end = Date.now() + milliseconds;
  while ((await guard.check("search")).reason !== "pinned") {
    if (Date.now() > end) {
      throw new Error("search was not pinned: does mcp-verdict get this program's spans?");
    }
    await new Promise((wake) => setTimeout(wake, 500));
  }
}

async function main(): Promise<void> {
  const [url, api = "http://127.0.0.1:55679"] = process.argv.slice(2);
  if (!url) {
    throw new Error("usage: contracts.js URL [CHECK_API], for example http://127.0.0.1:8000/mcp");
  }
  const client = new Client({ name: "library-agent", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const guard = new Guard(client, new URL(url), api);
  await attempt(guard, "first use");
  await untilPinned(guard);
  await attempt(guard, "pinned");
  await guard.unguarded("release", { what: "rename" });
  await attempt(guard, "renamed");
  await guard.unguarded("release", { what: "reword" });
  await attempt(guard, "reworded");
  await guard.unguarded("release", { what: "restore" });
  await attempt(guard, "restored");
  await client.close();
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => provider.shutdown())
  .catch((error) => console.error("spans were not delivered:", error.message));
