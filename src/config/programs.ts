/**
 * Programs that run other programs or reach the network: the one list that the configuration is judged by and that a
 * call is judged by. Pure. It cannot be complete, and nothing rests on it alone: `allowed_commands` is a closed set.
 */

export const SHELLS = words(`sh bash dash zsh ksh mksh pdksh fish csh tcsh ash rbash rksh pwsh powershell cmd wscript
  cscript busybox toybox`);
const INTERPRETERS = words(`python pypy node nodejs deno bun tsx ts-node coffee perl ruby irb pry php lua luajit tclsh
  wish expect awk gawk mawk nawk original-awk sed ed red ex vi vim nvim view rview rvim vimdiff nano pico emacs joe micro
  r rscript julia octave guile scheme racket sbcl clisp ghc ghci runghc elixir iex erl scala kotlin groovy jshell java
  jrunscript jjs swift dotnet mono osascript m4 dc gdb lldb sqlite3 psql mysql mariadb mongo mongosh redis-cli tex latex
  pdftex pdflatex xelatex lualatex ctags cscope openssl`);
const WRAPPERS =
  words(`env xargs parallel nohup nice ionice chrt choom taskset uclampset coresched numactl prlimit cpulimit softlimit
  timeout time watch watchexec entr hyperfine setsid setpgid stdbuf unbuffer flock script scriptlive scriptreplay rlwrap
  logsave run-parts run-mailcap start-stop-daemon sudo sudoedit doas su runuser pkexec sg newgrp chroot unshare nsenter
  pivot_root switch_root capsh setpriv systemd-run systemd-nspawn systemd-inhibit bwrap firejail setarch linux32 linux64
  i386 x86_64 uname26 fakeroot fakechroot proot catchsegv ld.so sshpass chpst setuidgid envdir dumb-init tini gosu
  su-exec dbus-run-session dbus-launch xvfb-run strace ltrace perf valgrind tmux screen dtach byobu less more most pg man
  pager lesspipe xdg-open open at batch crontab systemctl service busctl dbus-send ip mount git gh hg svn bzr tar bsdtar
  cpio zip gcore trap command builtin exec eval source`);
const BUILDERS =
  words(`make gmake cmake ninja meson scons just task rake gradle gradlew mvn ant sbt bazel buck npm npx yarn
  pnpm corepack pip pipx uv uvx poetry pipenv conda cargo rustc rustup go gcc g++ cc c++ cpp clang clang++ ld as gem bundle
  composer cpan easy_install apt apt-get aptitude dpkg yum dnf rpm zypper pacman apk snap flatpak brew port nix nix-shell
  docker podman nerdctl ctr crictl kubectl helm oc minikube kind terraform tofu pulumi ansible ansible-playbook puppet
  chef salt vagrant packer virsh lxc lxd`);
/** Our own server answers on the network: whoever can send a request there needs only a token to decide. */
const NETWORK = words(`curl curlie wget wget2 aria2c axel http https httpie xh hurl ab wrk lynx links elinks w3m nc ncat
  netcat socat websocat grpcurl telnet ftp lftp ncftp tftp ssh scp sftp slogin rsh rlogin ssh-agent ssh-copy-id autossh
  mosh rsync rclone s3cmd nmap tcpdump tshark dig nslookup host drill resolvectl whois ping traceroute`);

const KINDS: Readonly<Record<string, readonly string[]>> = {
  "is a shell: it runs whatever its arguments say": SHELLS,
  "is an interpreter: it runs whatever its arguments or files say": INTERPRETERS,
  "runs another program": WRAPPERS,
  "runs what its project, packages or images say": BUILDERS,
  "reaches the network, and so everything that listens there": NETWORK,
};

/** Harmless until an option makes them run something; a call is judged by its options, a bare entry allows them all. */
const RUN_BY_OPTION = words("find fd fdfind");

/** What is dangerous about a program whatever its arguments are, in words that follow its name. */
export function findProgramDanger(names: Iterable<string>): string | undefined {
  const known = new Set(names);
  return Object.entries(KINDS).find(([, programs]) => programs.some((program) => known.has(program)))?.[0];
}

/** The same for an entry that leaves the arguments open. */
export function findBareDanger(names: readonly string[]): string | undefined {
  const byOption = RUN_BY_OPTION.some((program) => names.includes(program));
  return findProgramDanger(names) ?? (byOption ? "can run another program" : undefined);
}

/** `/usr/bin/python3.11` is python, `vim.basic` vim, `gcc-12` gcc, `x86_64-linux-gnu-gcc` gcc. */
export function programNames(path: string): readonly string[] {
  const base = programBase(path).toLowerCase();
  if (/^ld(-linux|-musl|64)?[^/]*\.so/.test(base)) return [base, "env"];
  const plain = base.replace(/\.(exe|cmd|bat|com)$/, "");
  const unversioned = plain.replace(/[-.]?\d[\d.]*$/, "");
  return [base, plain, unversioned, plain.split(".")[0] ?? "", unversioned.split("-").at(-1) ?? ""];
}

export function programBase(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
