/**
 * What every store must do, as cases that any test runner can call: `for (const { name, run } of storeConformance)`.
 * Each case opens its own empty store.
 */
import { auditConformance } from "./conformance-audit.ts";
import { leasesConformance } from "./conformance-leases.ts";
import { listingsConformance } from "./conformance-listings.ts";
import { logConformance } from "./conformance-log.ts";
import type { StoreCase } from "./conformance-story.ts";

export const storeConformance: readonly StoreCase[] = [
  ...logConformance,
  ...leasesConformance,
  ...listingsConformance,
  ...auditConformance,
];
