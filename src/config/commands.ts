/** `allowed_commands`: the closed set of what may be proposed, and which programs in it can run any other program. */
import { isMap } from "yaml";
import type { AllowedCommand } from "./config.ts";
import { checkPattern } from "./pattern.ts";
import { readTextValue, writtenText } from "./scalar.ts";
import { type Item, Section } from "./section.ts";
import type { Report, Span, Value } from "./source.ts";

export interface ReadCommand extends AllowedCommand {
  /** For people. */
  readonly written: string;
  readonly span: Span;
}

const COMMAND_KEYS = {
  command: {},
  args: { lost: "Any arguments would be allowed." },
} as const;

export function readCommand(value: Value, report: Report): ReadCommand | undefined {
  if (!isMap(value.node)) {
    const text = readTextValue(value, { name: "an allowed command" }, report);
    const item = text === undefined ? undefined : { text, written: writtenText(value), span: value.span };
    return item && checkName(item, report) ? { ...named(item), args: undefined } : undefined;
  }
  const entry = new Section(value, value.span, { keys: COMMAND_KEYS, what: "an allowed command" }, report);
  entry.require("command");
  entry.require("args", ": a pattern for each argument, [] for none");
  const item = entry.item("command");
  const args = entry.items("args")?.flatMap((arg) => {
    const pattern = readTextValue(arg, { name: 'an entry of "args"' }, report);
    return pattern !== undefined && checkPattern(pattern, arg.span, "", report) ? [pattern] : [];
  });
  return item && args && checkName(item, report) ? { ...named(item), args } : undefined;
}

function named({ text, written, span }: Item) {
  return { command: text, written, span };
}

function checkName({ text, written, span }: Item, report: Report): boolean {
  if (!/\s/.test(text)) return true;
  const [command, ...args] = written.trim().split(/\s+/);
  const better = `{ command: ${command}, args: [${args.map((arg) => JSON.stringify(arg)).join(", ")}] }`;
  report.error(span, `an allowed command is the name of a program, not a command line; write ${better}`);
  return false;
}

/**
 * Programs that run what their arguments say: shells, interpreters, wrappers, and tools with a way to start others
 * (`find -exec`, `git -c alias.x=!…`, `tar --to-command`). Allowing one of them bare allows everything.
 */
const RUNS_OTHERS: ReadonlySet<string> = new Set(
  `sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox toybox pwsh powershell cmd wscript cscript osascript
   python pypy node nodejs deno bun tsx perl ruby irb php lua luajit tclsh wish expect r rscript julia java jshell groovy
   scala kotlin ghci erl elixir iex racket guile sbcl swift dotnet awk gawk mawk nawk sed ed ex vi vim nvim view emacs
   nano less more most man env xargs find fd parallel sudo doas su runuser pkexec nice ionice chrt taskset nohup setsid
   setarch stdbuf timeout time watch strace ltrace gdb lldb valgrind script screen tmux chroot unshare nsenter
   capsh flock systemd-run at batch crontab run-parts exec eval source command builtin entr ssh scp sftp rsync socat nc
   ncat netcat telnet docker podman nerdctl kubectl helm vagrant ansible ansible-playbook terraform make gmake cmake ninja
   rake ant mvn gradle npm npx pnpm yarn pip pipx uv uvx gem bundle cargo go composer git hg svn tar zip cpio m4 sqlite3
   psql mysql mongo mongosh redis-cli gcc cc clang ld.so openssl wget apt apt-get dpkg rpm yum dnf brew snap`
    .split(/\s+/)
    .filter(Boolean),
);

/** Whether this entry lets an agent run any program at all. */
export function runsAnything({ command, args }: AllowedCommand): boolean {
  const file = (command.split(/[\\/]/).at(-1) ?? command).toLowerCase().replace(/\.(exe|cmd|bat)$/, "");
  // python3, python3.12, ruby2.7, node-22
  const name = file.replace(/-?\d+(\.\d+)*$/, "");
  if (!RUNS_OTHERS.has(file) && !RUNS_OTHERS.has(name)) return false;
  return args === undefined || args.some(takesAnything);
}

/** A pattern that lets through something that nobody would list is as good as none. */
const UNLIKELY = "--any 'thing'; at $(all)/#";

function takesAnything(pattern: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(UNLIKELY);
}
