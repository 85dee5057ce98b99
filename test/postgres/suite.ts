/** A suite of tests on a PostgreSQL of its own: the server for the file, and stores that are closed after each test. */
import { afterAll, afterEach, beforeAll, describe, test } from "vitest";
import { systemIds } from "../../src/ports/ids.ts";
import { PostgresStore } from "../../src/store/postgres.ts";
import { type PostgresServer, postgresAvailable, startPostgres } from "./server.ts";

export interface PostgresSuite {
  readonly server: PostgresServer;
  /** A store on this database, or on a new one. */
  open(url?: string): Promise<PostgresStore>;
}

/** Where PostgreSQL cannot run, the suite is left out and says why. */
export function describePostgres(name: string, define: (suite: PostgresSuite) => void): void {
  const availability = postgresAvailable();
  if (!availability.ok) {
    describe.skip(name, () => test(`left out: ${availability.reason}`, () => {}));
    return;
  }
  describe(name, () => {
    let server: PostgresServer | undefined;
    let opened: PostgresStore[] = [];
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterEach(async () => {
      await Promise.all(opened.map((store) => store.close()));
      opened = [];
    });
    afterAll(() => server?.remove());

    define({
      get server() {
        if (!server) throw new Error("the server runs inside tests only");
        return server;
      },
      async open(url) {
        const store = await PostgresStore.open({ url: url ?? (await this.server.createDatabase()), ids: systemIds });
        opened.push(store);
        return store;
      },
    });
  });
}
