/** The owner's token: from the environment, or made once and kept where only the owner can read it. */
import { join } from "node:path";
import { HoldpointError } from "../errors.ts";
import { fileExists, makePrivateFile, readText } from "../ports/files.ts";
import type { Ids } from "../ports/ids.ts";
import { createFile } from "../ports/new-file.ts";

export const TOKEN_VARIABLE = "HOLDPOINT_TOKEN";
const PRIVATE_FILE = 0o600;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Makes the token when there is none. */
export function ownerToken(dataFolder: string, env: Environment, ids: Ids): string {
  const known = findOwnerToken(dataFolder, env);
  if (known !== undefined) return known;
  // Two of our tokens: 256 bits. Who loses the race takes the winner's.
  createFile(tokenFile(dataFolder), `${ids.token()}${ids.token()}\n`, ids.token(), PRIVATE_FILE);
  return readToken(tokenFile(dataFolder));
}

/** The token, if there is one. */
export function findOwnerToken(dataFolder: string, env: Environment): string | undefined {
  const given = env[TOKEN_VARIABLE];
  if (given !== undefined && given !== "") return checked(given, TOKEN_VARIABLE);
  const file = tokenFile(dataFolder);
  return fileExists(file) ? readToken(file) : undefined;
}

function tokenFile(dataFolder: string): string {
  return join(dataFolder, "token");
}

function readToken(file: string): string {
  makePrivateFile(file);
  return checked(readText(file).trim(), file);
}

/** What cannot stand in a header, or is nothing at all, is no token. */
function checked(token: string, where: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new HoldpointError(
    "usage-invalid",
    `${where} is not a token: one word of visible ASCII characters is. Delete the file to get a new one.`,
  );
}
