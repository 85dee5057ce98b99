/**
 * Programs that run other programs, and options that make harmless ones do so. A person who approves sees it said; a
 * tool that asks nobody does not run it. Pure. The list cannot be complete, and nothing rests on it alone: what is not
 * allowed by name is refused before, and what runs is always exactly the words that were shown.
 */
import { findDisguise, makeVisible } from "./prompt.ts";

export interface Warning {
  /** `program`: whatever its arguments; `option`: because of one; `look`: it may not be what it seems. */
  readonly about: "program" | "option" | "look";
  readonly text: string;
}

export function findWarnings(argv: readonly string[], executable: string): readonly Warning[] {
  const [word = "", ...args] = argv;
  const names = new Set([...namesOf(word), ...namesOf(executable)]);
  const warnings: Warning[] = [];
  const kind = Object.entries(RUNS_OTHERS).find(([, programs]) => programs.some((program) => names.has(program)));
  if (kind) warnings.push({ about: "program", text: `${baseOf(word)} ${kind[0]}` });
  for (const { programs, isMeant, what } of OPTIONS) {
    if (!programs.some((program) => names.has(program))) continue;
    const found = args.find((arg, i) => isMeant(arg, args[i + 1]));
    if (found !== undefined) warnings.push({ about: "option", text: `${baseOf(word)} ${makeVisible(found)} ${what}` });
  }
  for (const [i, each] of argv.entries()) {
    const disguise = findDisguise(each);
    if (disguise)
      warnings.push({ about: "look", text: `${i === 0 ? "the program's name" : `argument ${i}`} ${disguise}` });
  }
  return warnings;
}

const SHELLS = words("sh bash dash zsh ksh mksh pdksh fish csh tcsh ash rbash rksh pwsh powershell busybox toybox");
const INTERPRETERS = words(`python pypy node nodejs deno bun tsx ts-node coffee perl ruby irb pry php lua luajit tclsh
  wish expect awk gawk mawk nawk original-awk sed ed red ex vi vim nvim view rview rvim vimdiff nano pico emacs joe micro
  r rscript julia octave guile scheme racket sbcl clisp ghc ghci runghc elixir iex erl scala kotlin groovy jshell java
  jrunscript jjs swift dotnet mono osascript m4 dc gdb lldb sqlite3 psql mysql mariadb mongo mongosh redis-cli tex latex
  pdftex pdflatex xelatex lualatex ctags cscope openssl`);
const WRAPPERS =
  words(`env xargs parallel nohup nice ionice chrt taskset numactl prlimit cpulimit softlimit timeout time
  watch watchexec entr hyperfine setsid stdbuf unbuffer flock script scriptreplay rlwrap logsave run-parts run-mailcap
  start-stop-daemon sudo sudoedit doas su runuser pkexec sg newgrp chroot unshare nsenter capsh setpriv systemd-run bwrap
  firejail setarch linux32 linux64 i386 x86_64 strace ltrace perf valgrind tmux screen dtach byobu less more most pg man
  pager lesspipe xdg-open open at batch crontab systemctl service busctl dbus-send ip mount git gh hg svn bzr tar bsdtar
  cpio zip rsync ssh scp sftp ssh-agent ssh-copy-id autossh mosh socat nc ncat netcat telnet ftp tftp nmap tcpdump
  tshark gcore trap command exec eval source`);
const BUILDERS =
  words(`make gmake cmake ninja meson scons just task rake gradle gradlew mvn ant sbt bazel buck npm npx yarn
  pnpm corepack pip pipx uv uvx poetry pipenv conda cargo rustc rustup go gcc g++ cc c++ cpp clang clang++ ld as gem bundle
  composer cpan easy_install apt apt-get aptitude dpkg yum dnf rpm zypper pacman apk snap flatpak brew port nix nix-shell
  docker podman nerdctl ctr crictl kubectl helm oc minikube kind terraform tofu pulumi ansible ansible-playbook puppet
  chef salt vagrant packer virsh lxc lxd`);

const RUNS_OTHERS: Readonly<Record<string, readonly string[]>> = {
  "is a shell: it runs whatever its arguments say": SHELLS,
  "is an interpreter: it runs whatever its arguments or files say": INTERPRETERS,
  "runs another program": WRAPPERS,
  "runs what its project, packages or images say": BUILDERS,
};

interface OptionRule {
  readonly programs: readonly string[];
  readonly isMeant: (arg: string, next: string | undefined) => boolean;
  readonly what: string;
}

const RUNS = "runs another program";
const OPTIONS: readonly OptionRule[] = [
  { programs: ["find"], isMeant: oneOf("-exec -execdir -ok -okdir"), what: RUNS },
  { programs: ["find"], isMeant: oneOf("-delete"), what: "deletes files" },
  { programs: ["find"], isMeant: oneOf("-fprint -fprint0 -fprintf -fls"), what: "writes files" },
  { programs: ["fd", "fdfind"], isMeant: either(oneOf("-x -X"), long("exec exec-batch")), what: RUNS },
  { programs: ["rg"], isMeant: long("pre hostname-bin search-zip"), what: RUNS },
  { programs: ["sort"], isMeant: long("compress-program"), what: RUNS },
  { programs: ["sort"], isMeant: either(cluster("o"), long("output")), what: "writes files" },
  { programs: ["split"], isMeant: long("filter"), what: RUNS },
  { programs: ["wget"], isMeant: long("use-askpass"), what: RUNS },
  { programs: ["date"], isMeant: either(cluster("s"), long("set")), what: "sets the clock" },
  {
    programs: ["git"],
    isMeant: either(oneOf("-c -O"), long("config-env exec-path"), (arg) => arg.startsWith("-O")),
    what: "sets configuration, which can run another program",
  },
  {
    programs: ["git"],
    isMeant: long("upload-pack receive-pack ext-diff textconv open-files-in-pager exec extcmd git-dir work-tree"),
    what: RUNS,
  },
  { programs: ["git"], isMeant: (arg) => /^[a-z0-9+-]+::/i.test(arg), what: "names a transport, which is a program" },
  { programs: ["git"], isMeant: oneOf("filter-branch difftool mergetool -x"), what: RUNS },
  {
    programs: ["git"],
    isMeant: (arg, next) => (arg === "bisect" && next === "run") || (arg === "submodule" && next === "foreach"),
    what: RUNS,
  },
  { programs: ["git"], isMeant: oneOf("config"), what: "changes configuration, which can run another program" },
  {
    programs: ["tar", "bsdtar"],
    isMeant: either(
      long("to-command checkpoint-action use-compress-program info-script new-volume-script rsh-command rmt-command"),
      cluster("IF"),
    ),
    what: RUNS,
  },
  { programs: SHELLS, isMeant: cluster("c"), what: "runs the text that follows" },
  { programs: words("python pypy"), isMeant: cluster("cm"), what: "runs the text or module that follows" },
  {
    programs: words("node nodejs bun deno tsx"),
    isMeant: either(cluster("epr"), long("eval print require import loader experimental-loader"), oneOf("eval repl")),
    what: "runs the text or module that follows",
  },
  { programs: words("perl ruby lua luajit php"), isMeant: cluster("eErRlM"), what: "runs the text that follows" },
  { programs: words("ssh scp sftp rsync"), isMeant: either(cluster("oeFS"), long("rsh rsync-path")), what: RUNS },
  { programs: ["env"], isMeant: either(cluster("S"), long("split-string")), what: "takes a text apart and runs it" },
];

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

function oneOf(text: string): (arg: string) => boolean {
  const set = new Set(words(text));
  return (arg) => set.has(arg);
}

/** GNU programs take any beginning of a long option, and one dash or two. */
function long(text: string): (arg: string) => boolean {
  const options = words(text);
  return (arg) => {
    const [, name] = /^--?([a-z0-9][a-z0-9-]*)(?:=|$)/i.exec(arg) ?? [];
    if (name === undefined) return false;
    return options.some((option) => option === name || (arg.startsWith("--") && option.startsWith(name)));
  };
}

/** Short options may stand together behind one dash: `-xc`. */
function cluster(letters: string): (arg: string) => boolean {
  const pattern = new RegExp(`^-[a-zA-Z0-9]*[${letters}]`);
  return (arg) => pattern.test(arg);
}

function either(...tests: readonly ((arg: string) => boolean)[]): (arg: string) => boolean {
  return (arg) => tests.some((test) => test(arg));
}

/** `/usr/bin/python3.11` is python, `vim.basic` vim, `gcc-12` gcc, `x86_64-linux-gnu-gcc` gcc. */
function namesOf(path: string): readonly string[] {
  const base = baseOf(path).toLowerCase();
  if (/^ld(-linux|-musl|64)?[^/]*\.so/.test(base)) return [base, "env"];
  const plain = base.replace(/\.(exe|cmd|bat|com)$/, "");
  const unversioned = plain.replace(/[-.]?\d[\d.]*$/, "");
  return [base, plain, unversioned, plain.split(".")[0] ?? "", unversioned.split("-").at(-1) ?? ""];
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
