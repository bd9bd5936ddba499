#!/usr/bin/env python3
"""Run a checker and hold its failures against the list of those that are known.

  gate.py KNOWN SECTION -- COMMAND…

KNOWN has lines `SECTION GLOB  # why`; a checker prints `FAIL  NAME…` for what failed. All of its output
is shown. Passes when nothing failed that the list does not name, and everything that it names still
fails: a gap that has closed is an error too, until its line is taken out. The last line reads
"N passed, M failed", where M counts both kinds; known gaps are named and counted in neither.
"""
import fnmatch, re, subprocess, sys


def known_gaps(path, section):
    with open(path, encoding="utf-8") as f:
        lines = [line.split("#")[0].split(maxsplit=1) for line in f]
    return [line[1].strip() for line in lines if len(line) == 2 and line[0] == section]


def main():
    path, section, dashes, *command = sys.argv[1:]
    assert dashes == "--", __doc__
    gaps, failed, passed, closing = known_gaps(path, section), [], 0, None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            print(line, end="", flush=True)
            fail = re.match(r"FAIL\s+(.+)", line)
            if fail:
                failed.append(fail[1].strip())
            closing = re.match(r"(\d+) passed, (\d+) failed", line) or closing
    if not closing:
        sys.exit("%s ended with %s and no closing line" % (command[1], p.returncode))
    passed = int(closing[1])
    hit = {gap: [name for name in failed if fnmatch.fnmatch(name, gap)] for gap in gaps}
    named = [name for names in hit.values() for name in names]
    new = [name for name in failed if name not in named]
    closed = [gap for gap, names in hit.items() if not names]
    if int(closing[2]) != len(failed):
        new.append("%s failures, %d of them named" % (closing[2], len(failed)))
    for gap, names in hit.items():
        print("known gap: %s (%d)" % (gap, len(names)))
    for name in new:
        print("not known: %s" % name)
    for gap in closed:
        print("closed: '%s %s' passes now; take it out of %s" % (section, gap, path))
    print("%d passed, %d failed" % (passed, len(new) + len(closed)))
    sys.exit(1 if new or closed or (p.returncode and not failed) else 0)


if __name__ == "__main__":
    main()
