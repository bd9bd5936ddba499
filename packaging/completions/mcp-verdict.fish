# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_mcp_verdict_global_optspecs
    string join \n config= set= h/help V/version
end

function __fish_mcp_verdict_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_mcp_verdict_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_mcp_verdict_using_subcommand
    set -l cmd (__fish_mcp_verdict_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "run" -d 'Runs the processor: OTLP in, verdicts and OTLP out'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "demo" -d 'Plays recordings through the real ports and shows the verdicts'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "replay" -d 'Judges recorded OTLP in event time and prints the verdicts'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "explain" -d 'One chain: every fact, the rule that fired, what would change the verdict'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "coverage" -d 'What was observed of each tool, and what to add so that calls leave `unverified`'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "validate" -d 'Checks a configuration: all mistakes at once'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "lock" -d 'Contracts: pins tools and says what changed since'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "completions" -d 'Prints a completion script for a shell'
complete -c mcp-verdict -n "__fish_mcp_verdict_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand run" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand run" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand run" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand run" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -l captures -d 'Plays every .jsonl file of this directory instead of the packed recordings' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -l page -d 'Stays until Ctrl-C, so that the live page can be looked at'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand demo" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -l format -d 'How records are printed' -r -f -a "table\t''
json\t''"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -l revisions -d 'Print what the whole input yields, or every revision on the way there' -r -f -a "final\t''
all\t''"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand replay" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l format -d 'How it is printed' -r -f -a "text\t''
json\t''"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l request -d 'JSON-RPC request id' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l chain -d 'Chain id, or how it begins' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -l trace -d 'Trace id: every chain of the trace' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand explain" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -l format -d 'How it is printed' -r -f -a "text\t''
json\t''"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -l try -d 'Evidence rules to try instead: a configuration, `evidence:` alone, or the bare list' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand coverage" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand validate" -l config -d 'Configuration file, or directory of them; several are merged in order' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand validate" -l set -d 'One value over the files, as in --set processors.mcp_verdict.settle=2s' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand validate" -l keys -d 'Print every key with its form, default and meaning instead'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand validate" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand validate" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "init" -d 'Pin every tool of a server that has no pins yet'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "check" -d 'Compare a listing with the lockfile: 0 same, 1 drift, 2 could not check'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "diff" -d 'Show what changed since the pin, or between two listings'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "approve" -d 'Make what is listed now the pin'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "list" -d 'Show the pins'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and not __fish_seen_subcommand_from init check diff approve list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l from-instance -d 'A running mcp-verdict, as in http://127.0.0.1:55679, instead of files' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l bearer-token-file -d 'The token that its page asks for' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l basic-file -d 'USER:PASSWORD, where its page asks for that' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l ca-file -d 'Certificates to trust it by, instead of the system\'s' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l server -d 'The server\'s name in the lockfile; may be left out where it holds one server' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l auth -d 'Pins of one authorization context: its 32 hex digits in a lockfile, or the text of mcp_evidence.session.auth_context' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l client -d 'Pins of one client instance: its 32 hex digits in a lockfile' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l lockfile -d 'The lockfile' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -l format -d 'How to print' -r -f -a "text\t'For a terminal'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning'
junit\t'JUnit XML, for test reports'"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from init" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l from-instance -d 'A running mcp-verdict, as in http://127.0.0.1:55679, instead of files' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l bearer-token-file -d 'The token that its page asks for' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l basic-file -d 'USER:PASSWORD, where its page asks for that' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l ca-file -d 'Certificates to trust it by, instead of the system\'s' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l server -d 'The server\'s name in the lockfile; may be left out where it holds one server' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l auth -d 'Pins of one authorization context: its 32 hex digits in a lockfile, or the text of mcp_evidence.session.auth_context' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l client -d 'Pins of one client instance: its 32 hex digits in a lockfile' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l lockfile -d 'The lockfile' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -l format -d 'How to print' -r -f -a "text\t'For a terminal'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning'
junit\t'JUnit XML, for test reports'"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l from-instance -d 'A running mcp-verdict, as in http://127.0.0.1:55679, instead of files' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l bearer-token-file -d 'The token that its page asks for' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l basic-file -d 'USER:PASSWORD, where its page asks for that' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l ca-file -d 'Certificates to trust it by, instead of the system\'s' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l server -d 'The server\'s name in the lockfile; may be left out where it holds one server' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l auth -d 'Pins of one authorization context: its 32 hex digits in a lockfile, or the text of mcp_evidence.session.auth_context' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l client -d 'Pins of one client instance: its 32 hex digits in a lockfile' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l lockfile -d 'The lockfile' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l format -d 'How to print' -r -f -a "text\t'For a terminal'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning'
junit\t'JUnit XML, for test reports'"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -l against -d 'The older listing; with it the diff shows text and grades schemas' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from diff" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l from-instance -d 'A running mcp-verdict, as in http://127.0.0.1:55679, instead of files' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l bearer-token-file -d 'The token that its page asks for' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l basic-file -d 'USER:PASSWORD, where its page asks for that' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l ca-file -d 'Certificates to trust it by, instead of the system\'s' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l server -d 'The server\'s name in the lockfile; may be left out where it holds one server' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l auth -d 'Pins of one authorization context: its 32 hex digits in a lockfile, or the text of mcp_evidence.session.auth_context' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l client -d 'Pins of one client instance: its 32 hex digits in a lockfile' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l lockfile -d 'The lockfile' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l format -d 'How to print' -r -f -a "text\t'For a terminal'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning'
junit\t'JUnit XML, for test reports'"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l tool -d 'Only this tool; may be given more than once' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -l expect -d 'Refuse unless the tool (or, without --tool, the registry) has this digest' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from approve" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -l server -d 'The server\'s name in the lockfile; may be left out where it holds one server' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -l auth -d 'Pins of one authorization context: its 32 hex digits in a lockfile, or the text of mcp_evidence.session.auth_context' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -l client -d 'Pins of one client instance: its 32 hex digits in a lockfile' -r
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -l lockfile -d 'The lockfile' -r -F
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -l format -d 'How to print' -r -f -a "text\t'For a terminal'
json\t'One JSON document'
sarif\t'SARIF 2.1.0, for code scanning'
junit\t'JUnit XML, for test reports'"
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "init" -d 'Pin every tool of a server that has no pins yet'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "check" -d 'Compare a listing with the lockfile: 0 same, 1 drift, 2 could not check'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Show what changed since the pin, or between two listings'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "approve" -d 'Make what is listed now the pin'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "list" -d 'Show the pins'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand lock; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand completions" -s h -l help -d 'Print help'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand completions" -s V -l version -d 'Print version'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "run" -d 'Runs the processor: OTLP in, verdicts and OTLP out'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "demo" -d 'Plays recordings through the real ports and shows the verdicts'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "replay" -d 'Judges recorded OTLP in event time and prints the verdicts'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "explain" -d 'One chain: every fact, the rule that fired, what would change the verdict'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "coverage" -d 'What was observed of each tool, and what to add so that calls leave `unverified`'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "validate" -d 'Checks a configuration: all mistakes at once'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "lock" -d 'Contracts: pins tools and says what changed since'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "completions" -d 'Prints a completion script for a shell'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and not __fish_seen_subcommand_from run demo replay explain coverage validate lock completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and __fish_seen_subcommand_from lock" -f -a "init" -d 'Pin every tool of a server that has no pins yet'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and __fish_seen_subcommand_from lock" -f -a "check" -d 'Compare a listing with the lockfile: 0 same, 1 drift, 2 could not check'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and __fish_seen_subcommand_from lock" -f -a "diff" -d 'Show what changed since the pin, or between two listings'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and __fish_seen_subcommand_from lock" -f -a "approve" -d 'Make what is listed now the pin'
complete -c mcp-verdict -n "__fish_mcp_verdict_using_subcommand help; and __fish_seen_subcommand_from lock" -f -a "list" -d 'Show the pins'
