"""What the edge rows share: a sink behind the target, the target process, the row runner (and edgewire).

One line to install what it needs, in a virtual environment of your own:
  python3 -m venv VENV && VENV/bin/pip install grpcio opentelemetry-proto protobuf zstandard h2
Everything listens on loopback, on ports picked here; only processes started here are ended, by their id.
"""
import argparse, concurrent.futures, contextlib, dataclasses, gzip, http.server, json, os, re, signal, socket
import shutil, subprocess, tempfile, threading, time

os.environ.setdefault("GRPC_VERBOSITY", "NONE")     # refused handshakes are wanted here, not news
import grpc
import zstandard
from google.protobuf.message import DecodeError

from edgewire import *
from edgewire import is_verdict, known, without_verdict


class Fail(Exception):
    """The row's promise was broken; the text says how."""


class Skip(Exception):
    """The row does not apply to this kind of target."""


def need(ok, why):
    if not ok:
        raise Fail(why)


def same(kind, sent, got, signal="traces"):
    """mcp-verdict promises the very bytes; a Collector only the fields that it knows."""
    s = SIGNALS[signal]
    for part, cls in (("resource", s.level), ("scope", s.inner), ("raw", s.item)):
        a, b = getattr(sent, part), getattr(got, part)
        if a == b or kind == "mcp-verdict" and part == "raw" and without_verdict(b) == a:
            continue
        need(kind != "mcp-verdict", "%s bytes changed: %s became %s" % (part, a[:80].hex(), b[:80].hex()))
        try:
            want, have = known(cls, a), known(cls, b)
        except DecodeError as e:
            raise Fail("%s cannot be decoded: %s" % (part, e))
        if want.SerializeToString(deterministic=True) != have.SerializeToString(deterministic=True):
            lines = [set(str(m).splitlines()) for m in (want, have)]
            raise Fail("%s fields changed: lost %.150s; new %.150s" % (part, sorted(lines[0] - lines[1]), sorted(lines[1] - lines[0])))


def one(mark, **more):
    return export(span(mark, **more))


def whole(x, sent, got, signal="traces"):
    """`got` is what the first item of the request `sent` should have become."""
    same(x.kind, next(items(sent)), got, signal)


# ---------------------------------------------------------------- the backend behind the target

@dataclasses.dataclass
class Reply:
    code: int = 0                 # gRPC status
    http: int = 200
    body: bytes = b""             # answer message or HTTP body
    headers: tuple = ()           # HTTP headers or gRPC trailers
    message: str = "edge"
    delay: float = 0
    drop: bool = False            # HTTP only: break the connection in the middle of the answer


OK = Reply()


def retry_info(seconds, code=14, nanos=0):
    info = field(1, field(1, int(seconds)) + field(2, nanos))
    detail = field(1, "type.googleapis.com/google.rpc.RetryInfo") + field(2, info)
    status = field(1, code) + field(2, "later") + field(3, detail)
    return Reply(code=code, headers=(("grpc-status-details-bin", status),))


def scripted(plan):
    """A reply function: the n-th request holding a mark gets the n-th reply of its list, then success."""
    lock = threading.Lock()

    def reply(got):
        with lock:
            for mark, replies in plan.items():
                if mark in got.body and got.signal == "traces":
                    return replies.pop(0) if replies else OK
        return OK
    return reply


@dataclasses.dataclass
class Got:
    signal: str
    body: bytes
    at: float
    headers: dict
    wire: str
    items: list = None


class Sink:
    """An OTLP backend on two ports (gRPC, HTTP) that keeps raw bodies and answers as `reply(got)` says; tls is for gRPC."""

    def __init__(self, reply=None, ports=(0, 0), tls=None):
        self.got, self.cond, self.reply = [], threading.Condition(), reply or (lambda got: OK)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(48), options=[
            ("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers((self._handler(),))
        where = "127.0.0.1:%d" % ports[0]
        self.grpc = self.server.add_secure_port(where, tls) if tls else self.server.add_insecure_port(where)
        self.server.start()
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", ports[1]), self._http_class())
        self.web.daemon_threads, self.http = True, self.web.server_address[1]
        self.web.handle_error = lambda *a: None    # a target that is killed breaks its connections
        threading.Thread(target=self.web.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self):
        self.server.stop(0).wait(2)
        self.web.shutdown()
        self.web.server_close()

    def _take(self, signal_name, body, headers, wire):
        got = Got(signal_name, body, time.time(), headers, wire)
        answer = self.reply(got)
        with self.cond:
            self.got.append(got)
            self.cond.notify_all()
        time.sleep(answer.delay)
        return answer

    def _handler(self):
        sink = self

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                name = next((s.name for s in SIGNALS.values() if s.method == details.method), None)
                return grpc.unary_unary_rpc_method_handler(lambda b, c: self.call(name, b, c)) if name else None

            def call(self, name, body, context):
                answer = sink._take(name, body, dict(context.invocation_metadata()), "grpc")
                if answer.code:
                    context.set_code(CODES[answer.code])
                    context.set_details(answer.message)
                context.set_trailing_metadata(answer.headers)
                return answer.body
        return Handler()

    def _http_class(self):
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def body(self):
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                out = b""
                while size := int(self.rfile.readline(), 16):
                    out += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return out

            def do_POST(self):
                body, coding = self.body(), self.headers.get("Content-Encoding", "")
                if coding == "gzip":
                    body = gzip.decompress(body)
                elif coding == "zstd":
                    body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
                name = next((s.name for s in SIGNALS.values() if s.path == self.path), self.path)
                heads = {k.lower(): v for k, v in self.headers.items()}
                answer = sink._take(name, body, heads, "http")
                self.send_response(answer.http)
                kinds = [v for k, v in answer.headers if k.lower() == "content-type"]
                self.send_header("Content-Type", kinds[0] if kinds else heads.get("content-type", PB))
                for k, v in answer.headers:
                    if k.lower() != "content-type":
                        self.send_header(k, v)
                self.send_header("Content-Length", str(len(answer.body) + (20 if answer.drop else 0)))
                self.end_headers()
                self.wfile.write(answer.body)
                if answer.drop:
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
        return Handler

    def find(self, mark, signal="traces"):
        """Forwarded items whose bytes hold `mark`; verdict spans left out."""
        out = []
        for got in list(self.got):
            if got.signal == signal and mark in got.body:
                got.items = got.items or list(items(got.body))
                out += [i for i in got.items if mark in i.raw and not (signal == "traces" and is_verdict(i.raw))]
        return out

    def tries(self, mark):
        return [g for g in list(self.got) if mark in g.body and g.signal == "traces"]

    def until(self, ready, timeout):
        end = time.time() + timeout
        with self.cond:
            while not (value := ready()) and time.time() < end:
                self.cond.wait(min(0.2, max(0.01, end - time.time())))
        return value or ready()

    def wait(self, mark, count=1, timeout=5, signal="traces"):
        self.until(lambda: len(self.find(mark, signal)) >= count, timeout)
        return self.find(mark, signal)


# ---------------------------------------------------------------- the program under test

_ports, _started = set(), []
_home = tempfile.TemporaryDirectory(prefix="edge-")


def free_port():
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in _ports:
            _ports.add(port)
            return port


DEFAULTS = dict(exporter="grpc", encoding="proto", compression="none", headers={}, timeout="2s", limit=16 * MIB,
                max_batch=4 * MIB, split=False, queue=0, first_retry="200ms", last_retry="1s", grace=5, settle="300ms",
                tls=None, out_tls=None, cors=None, auth=None, held=256 * MIB, env={})


def size(n):
    return "%dMiB" % (n // MIB)


def verdict_config(t, o):
    """As the program's configuration reference has it."""
    tls = {"tls": o["tls"]} if o["tls"] else {}
    http_in = {"endpoint": "127.0.0.1:%d" % t.http, "max_request_body_size": size(o["limit"]), **tls}
    if o["cors"]:
        http_in["cors"] = {"allowed_origins": o["cors"]}
    otlp = {"protocols": {"grpc": {"endpoint": "127.0.0.1:%d" % t.grpc, "max_recv_msg_size": size(o["limit"]), **tls},
                          "http": http_in}}
    if o["auth"]:
        otlp["auth"] = o["auth"]
    name = "otlp" if o["exporter"] == "grpc" else "otlp_http"
    out = {"endpoint": "http%s://127.0.0.1:%d" % ("s" if o["out_tls"] else "", t.backend), "tls": o["out_tls"] or {},
           "headers": o["headers"], "timeout": o["timeout"], "max_batch_size": size(o["max_batch"]),
           "retry_on_failure": {"initial_interval": o["first_retry"], "max_interval": o["last_retry"], "max_elapsed_time": 0}}
    if o["compression"] != "none":
        out["compression"] = o["compression"]
    if name == "otlp_http":
        out["encoding"] = o["encoding"]
    return {
        "receivers": {"otlp": otlp},
        "processors": {"mcp_verdict": {"settle": o["settle"], "limits": {"held_spans": size(o["held"])}}},
        "storage": {"directory": os.path.join(t.dir, "data"), "ack": "durable", "max_size": size(o["queue"] or 1024 * MIB)},
        "exporters": {name: out},
        "service": {"traces": [name], "logs": [name], "metrics": [name], "profiles": [name],
                    "shutdown_timeout": "%ds" % o["grace"], "telemetry": {
            "logs": {"level": "info"}, "metrics": {"endpoint": "127.0.0.1:%d" % t.metrics},
            "health": {"endpoint": "127.0.0.1:%d" % t.health}, "page": {"endpoint": "127.0.0.1:%d" % t.page}}}}


def collector_config(t, o):
    tls = {"tls": o["tls"]} if o["tls"] else {}
    http_in = {"endpoint": "127.0.0.1:%d" % t.http, "max_request_body_size": o["limit"], **tls}
    if o["cors"]:
        http_in["cors"] = {"allowed_origins": o["cors"]}
    name = "otlp_grpc" if o["exporter"] == "grpc" else "otlp_http"
    waiting = {"num_consumers": 10, "queue_size": 32 if o["queue"] else 5000}
    if o["split"]:
        waiting["batch"] = {"flush_timeout": "100ms", "sizer": "bytes", "min_size": 1, "max_size": o["max_batch"]}
    out = {"endpoint": ("" if name == "otlp_grpc" else "http://") + "127.0.0.1:%d" % t.backend, "tls": o["out_tls"] or {"insecure": True},
           "compression": o["compression"], "headers": o["headers"], "timeout": o["timeout"], "sending_queue": waiting,
           "retry_on_failure": {"initial_interval": o["first_retry"], "max_interval": o["last_retry"], "max_elapsed_time": 0}}
    if name == "otlp_http":
        out["encoding"] = o["encoding"]
    return {
        "receivers": {"otlp": {"protocols": {"http": http_in, "grpc": {
            "endpoint": "127.0.0.1:%d" % t.grpc, "max_recv_msg_size_mib": o["limit"] // MIB, **tls}}}},
        "exporters": {name: out},
        "service": {"pipelines": {s: {"receivers": ["otlp"], "exporters": [name]} for s in SIGNALS},
                    "telemetry": {"logs": {"level": "info"}, "metrics": {"readers": [{"pull": {"exporter": {"prometheus": {
                        "host": "127.0.0.1", "port": t.metrics}}}}]}}}}


class Target:
    """One process under test, its configuration, ports and log file."""

    def __init__(self, binary, kind, sink, **options):
        self.binary, self.kind, self.o = binary, kind, {**DEFAULTS, **options}
        self.dir, self.proc = tempfile.mkdtemp(dir=_home.name), None
        self.backend = sink.grpc if self.o["exporter"] == "grpc" else sink.http
        self.grpc, self.http, self.metrics, self.health, self.page = (free_port() for _ in range(5))
        self.config, self.log = os.path.join(self.dir, "config.yaml"), os.path.join(self.dir, "log")
        make = verdict_config if kind == "mcp-verdict" else collector_config
        with open(self.config, "w") as f:          # JSON is YAML
            json.dump(make(self, self.o), f, indent=1)

    def start(self, wait=True):
        extra = ["--feature-gates=+service.profilesSupport"] if self.kind == "collector" else []
        run = [] if self.kind == "collector" else ["run"]
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen([self.binary, *run, "--config", self.config, *extra], cwd=self.dir,
                                         stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **self.o["env"]})
        _started.append(self.proc)
        end = time.time() + 10
        while wait and not all(is_open(p) for p in (self.grpc, self.http)):
            need(self.proc.poll() is None and time.time() < end, "did not start: " + self.tail())
            time.sleep(0.05)
        return self

    def tail(self, size=400):
        with open(self.log, "rb") as f:
            return f.read()[-size:].decode("utf-8", "replace").strip().replace("\n", " | ")

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def signal(self, number):
        if self.alive():
            self.proc.send_signal(number)

    def ended(self, timeout):
        """Seconds until it ended, or None when it did not within the timeout."""
        start = time.time()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.proc.wait(timeout)
            return time.time() - start

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.proc:
            self.proc.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def memory(self, what="VmRSS"):
        with open("/proc/%d/status" % self.proc.pid) as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith(what + ":"))

    @contextlib.contextmanager
    def flat(self, mib):
        """Memory may not rise by more than `mib` at any moment inside the block."""
        before = self.memory()
        with open("/proc/%d/clear_refs" % self.proc.pid, "w") as f:
            f.write("5")                           # resets the peak
        yield
        need(self.alive(), "process died: " + self.tail())
        rise = self.memory("VmHWM") - before
        need(rise <= mib, "memory rose by %d MiB, more than %d" % (rise, mib))

    def samples(self):
        need(is_open(self.metrics), "nothing listens on the metrics port")
        text = b"".join(a.body for a in exchange(self.metrics, b"GET /metrics HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n"))
        found = re.findall(r"^([a-z_A-Z:]+[\w:]*)(\{.*\})? ([-+.e\dNaInf]+)", text.decode("utf-8", "replace"), re.M)
        return [(name + labels, float(value)) for name, labels, value in found]

    def losses(self):
        """The counters that tell of lost items, by name and labels."""
        return {n: v for n, v in self.samples() if re.search("fail|drop|reject|refus|discard|lost|permanent", n.split("{")[0])}

    def lost_since(self, before):
        """By how much each such counter grew."""
        return {n: v - before.get(n, 0) for n, v in self.losses().items() if v > before.get(n, 0)}

    def total(self, name):
        return sum(v for n, v in self.samples() if n.startswith(name))


def is_open(port):
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(("127.0.0.1", port)) == 0


# ---------------------------------------------------------------- rows

RULES = {"accept": "accepted, all of it arrives", "refuse": "a final refusal, nothing arrives",
         "either": "accepted and all of it arrives, or a final refusal and nothing arrives"}
WHOLE = 225                       # seconds for a whole run


@dataclasses.dataclass
class Row:
    name: str
    sends: str
    right: str
    run: object
    own: bool
    limit: float
    only: str


class Bench:
    """What a row works with: the shared target `t` and its `sink`, or its own from `start`."""

    def __init__(self, binary, kind, t=None, sink=None):
        self.binary, self.kind, self.t, self.sink, self.open = binary, kind, t, sink, []

    def start(self, reply=None, sink=None, **options):
        sink = sink or Sink(reply)
        t = Target(self.binary, self.kind, sink, **options)
        self.open += [t.close, sink.stop]
        return t.start(), sink

    def folder(self):
        """A new directory, gone when the run ends."""
        return tempfile.mkdtemp(dir=_home.name)

    def close(self):
        for close in self.open:
            with contextlib.suppress(Exception):
                close()

    def feed(self, body, mark, rule="accept", count=1, sent=None, wires=("http", "grpc"), ctype=PB):
        """Post one body on each wire. accept: all of it arrives; refuse: a final refusal and nothing arrives; either: one of both."""
        arrived, seen = 0, []
        for wire in wires:
            a = post(self.t.http, body, ctype=ctype) if wire == "http" else call(self.t.grpc, body)
            seen.append("%s %s" % (wire, a))
            if a.ok:
                need(rule != "refuse", "%s accepted it" % wire)
                arrived += count
                got = self.sink.wait(mark, arrived, 4)
                need(len(got) >= arrived, "%s said success, %d of %d arrived" % (wire, len(got) - arrived + count, count))
                for want, item in zip(sent or [], got[arrived - count:]):
                    same(self.kind, want, item)
            else:
                need(rule != "accept" and a.refused, "%s answered %s" % (wire, a))
        if not arrived:
            time.sleep(0.2)
            need(not self.sink.find(mark), "refused, yet forwarded")
        return "; ".join(seen)

    def sound(self, a, mark, count=1, closed=True):
        """Success and all of it arrives, or a final refusal (closed: or an ended connection) and nothing does."""
        if a.ok:
            got = self.sink.wait(mark, count, 4)
            need(len(got) >= count, "success, then %d of %d arrived" % (len(got), count))
        else:
            need(a.refused or closed and a.code in (None, "RESET"), "answered %s" % a)
            time.sleep(0.1)
            need(not self.sink.find(mark), "refused, yet forwarded")
        return str(a)

    def serves(self):
        """A plain export on both wires still works."""
        mark = new_trace()
        for a in (post(self.t.http, export(span(mark)), timeout=3), call(self.t.grpc, export(span(mark)), timeout=3)):
            need(a.ok, "the next plain export got %s" % a)
        need(len(self.sink.wait(mark, 2, 4)) >= 2, "the next plain export was not forwarded")


class Table:
    """Rows register themselves here through `row`; `main` is the command line of both testers."""

    def __init__(self):
        self.rows = []

    def row(self, name, sends, right, own=False, limit=20, only=None):
        def keep(run):
            self.rows.append(Row(name, sends, right, run, own, limit, only))
            return run
        return keep

    def main(self, doc):
        ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        ap.add_argument("--bin", help="the program under test")
        ap.add_argument("--kind", choices=("mcp-verdict", "collector"), default="mcp-verdict")
        ap.add_argument("--only", metavar="SUBSTR", default="", help="rows whose name holds this")
        ap.add_argument("--list", action="store_true", help="print the rows and stop")
        a = ap.parse_args()
        rows = [r for r in self.rows if a.only.lower() in r.name.lower()]
        if a.list:
            for r in rows:
                print("%s\n    sends: %s\n    right: %s" % (r.name, r.sends, r.right))
            return print("%d rows" % len(rows))
        if not a.bin or not rows:
            ap.error("--bin is needed" if not a.bin else "no such row")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.leave(3))
        self.tally, self.lock, self.end = {"pass": 0, "FAIL": 0, "skip": 0}, threading.Lock(), time.time() + WHOLE
        binary = os.path.abspath(a.bin)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(self.judge, r, Bench(binary, a.kind)) for r in rows if r.own]
            self.together(binary, a.kind, [r for r in rows if not r.own])
            for job in jobs:
                job.result()
        print("%d passed, %d failed, %d skipped" % (self.tally["pass"], self.tally["FAIL"], self.tally["skip"]), flush=True)
        self.leave(1 if self.tally["FAIL"] else 0)

    def leave(self, status):
        """End at once, whatever rows still hang; only our own children are ended, by their id."""
        for proc in _started:
            with contextlib.suppress(OSError):
                proc.kill()                        # nothing is sent to one that has ended
        shutil.rmtree(_home.name, ignore_errors=True)
        os._exit(status)

    def together(self, binary, kind, rows):
        """Rows on one shared target, which is started anew after a row that failed."""
        bench = Bench(binary, kind)
        for r in rows:
            if not self.judge(r, bench):
                bench.close()
                bench = Bench(binary, kind)
        bench.close()

    def judge(self, r, bench):
        """Run a row within its time; a shared target must still serve afterwards."""
        result = []

        def work():
            try:
                if r.only and r.only != bench.kind:
                    raise Skip("for %s only" % r.only)
                need(time.time() < self.end, "not run: the whole may take %d s" % WHOLE)
                if not r.own and not (bench.t and bench.t.alive()):
                    bench.t, bench.sink = bench.start()
                said = r.run(bench) or ""
                if not r.own:
                    bench.serves()
                result[:] = ["pass", said]
            except Skip as e:
                result[:] = ["skip", str(e)]
            except Fail as e:
                result[:] = ["FAIL", str(e)]
            except Exception as e:                  # a fault here is shown, never taken for a pass
                where = e.__traceback__
                while where.tb_next:
                    where = where.tb_next
                place = os.path.basename(where.tb_frame.f_code.co_filename), where.tb_lineno
                result[:] = ["FAIL", "%s: %s (%s:%d)" % (type(e).__name__, e, *place)]
        thread = threading.Thread(target=work, daemon=True)
        began = time.time()
        thread.start()
        limit = max(1, min(r.limit, self.end + 5 - began))
        thread.join(limit)
        status, said = result or ["FAIL", "no end within %d s" % limit]
        if r.own:
            bench.close()
        with self.lock:
            self.tally[status] += 1
            print("%s  %s: %s  [%.1f s]" % (status, r.name, " ".join(said.split())[:400], time.time() - began), flush=True)
            if status == "FAIL":
                print("      sends: %s\n      right: %s" % (r.sends, r.right), flush=True)
        return status != "FAIL"


table = Table()
row = table.row
