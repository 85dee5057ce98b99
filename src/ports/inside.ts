/** Whether a path lies in a folder: by its names alone, on every kind of file system. */
import { sep } from "node:path";

/** A folder is inside itself. Both are absolute and without `.` and `..`. */
export function isInside(path: string, folder: string): boolean {
  return fold(path) === fold(folder) || fold(path).startsWith(fold(folder).replace(/[/\\]?$/, sep));
}

/** Some file systems know one file by several spellings; taking two names for one too often does no harm. */
export function fold(path: string): string {
  return path.normalize("NFC").toLowerCase();
}
