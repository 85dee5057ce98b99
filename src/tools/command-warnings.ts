/**
 * What a person should know about a call before approving: that its program runs others or reaches the network, that an
 * option makes a harmless one do so, that something is not what it looks like. A tool that asks nobody does not run
 * the former. Pure. No list is complete, and nothing rests on it alone: what is not allowed by name is refused before,
 * and what runs is always exactly the words that were shown.
 */
import { findProgramDanger, programBase, programNames, SHELLS, words } from "../config/programs.ts";
import { findDisguise, makeVisible } from "./prompt.ts";

export interface Warning {
  /** `program`: whatever its arguments; `option`: because of one; `look`: it may not be what it seems. */
  readonly about: "program" | "option" | "look";
  readonly text: string;
}

export function findWarnings(argv: readonly string[], executable: string): readonly Warning[] {
  const [word = "", ...args] = argv;
  const names = new Set([...programNames(word), ...programNames(executable)]);
  const warnings: Warning[] = [];
  const danger = findProgramDanger(names);
  if (danger !== undefined) warnings.push({ about: "program", text: `${programBase(word)} ${danger}` });
  for (const { programs, isMeant, what } of OPTIONS) {
    if (!programs.some((program) => names.has(program))) continue;
    const found = args.find((arg, i) => isMeant(arg, args[i + 1]));
    if (found !== undefined)
      warnings.push({ about: "option", text: `${programBase(word)} ${makeVisible(found)} ${what}` });
  }
  for (const [i, each] of argv.entries()) {
    const disguise = findDisguise(each);
    if (disguise)
      warnings.push({ about: "look", text: `${i === 0 ? "the program's name" : `argument ${i}`} ${disguise}` });
  }
  return warnings;
}

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
