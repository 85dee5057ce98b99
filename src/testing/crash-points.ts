/**
 * Every call that leaves the pure code is a place where the process may die: before it has an effect, and after it has
 * one but before anybody knows. Wrapping a port makes each of its methods such a point, new ones included.
 */

export interface PortCall {
  /** Port and method: `store.append`. */
  readonly point: string;
  readonly args: readonly unknown[];
}

/** Decides what becomes of a call. A call without a promise cannot be held up; it can only be the last one. */
export interface CallHandler {
  async<T>(call: PortCall, perform: () => Promise<T>): Promise<T>;
  sync<T>(call: PortCall, perform: () => T): T;
}

/** Methods that answer at once; all others answer with a promise. */
const SYNC: ReadonlySet<string> = new Set(["clock.nowMs", "ids.uuid", "ids.token", "tool.promptFor", "tool.question"]);

export function wrapPort<Port extends object>(name: string, port: Port, handler: CallHandler): Port {
  return new Proxy(port, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function" || typeof property !== "string") return value;
      const point = `${name}.${property}`;
      return (...args: unknown[]) => {
        const perform = () => Reflect.apply(value, target, args);
        return SYNC.has(point) ? handler.sync({ point, args }, perform) : handler.async({ point, args }, perform);
      };
    },
  });
}

/** The names of all points of a port: what a coverage check expects to have been hit. */
export function pointsOf(name: string, port: object): string[] {
  const names = new Set<string>();
  for (let at: object | null = port; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const property of Object.getOwnPropertyNames(at)) {
      const descriptor = Object.getOwnPropertyDescriptor(at, property);
      if (property !== "constructor" && typeof descriptor?.value === "function") names.add(`${name}.${property}`);
    }
  }
  return [...names];
}
