/** A test program as one file: a child that is started hundreds of times is then ready in half the time. */
import { join, parse } from "node:path";
import { build } from "vite";

export async function bundle(program: string, folder: string): Promise<string> {
  await build({
    configFile: false,
    logLevel: "error",
    build: { ssr: program, outDir: folder, target: "node22", minify: false },
    ssr: { noExternal: true },
  });
  return join(folder, `${parse(program).name}.js`);
}
