/** Ids and randomness as a port: everything unpredictable that production code uses comes from here. */
import { randomBytes } from "node:crypto";

export interface Ids {
  /** UUIDv7 for `nowMs`: sorts by time. */
  uuid(nowMs: number): string;
  /** An unguessable token: the claim of an effect, a store epoch. */
  token(): string;
}

export const systemIds: Ids = {
  uuid(nowMs) {
    const bytes = randomBytes(16);
    bytes.writeUIntBE(nowMs, 0, 6);
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    const hex = bytes.toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
  token: () => randomBytes(16).toString("base64url"),
};
