// The client: typed calls by path, with retries, errors and pages.
import { complete } from "./answers.js";
import { AlmanacError, NoAnswer, Unreadable, errorOf, isAlmanacs } from "./errors.js";
import { isCreation, isRepeatable, pauseBefore, sleep } from "./retries.js";
import type { Answer, Init, InitArguments, ListPaths, Method, Page, PathsWith, Row } from "./types.js";
import { urlOf } from "./url.js";
import { VERSION } from "./version.js";

export interface Options {
  /** Where Almanac is; default: the variable `ALMANAC_URL`. */
  baseUrl?: string;
  /** The API key; default: the variable `ALMANAC_API_KEY`. */
  apiKey?: string;
  /** How often a request that is safe to repeat is sent again; default: 2. */
  retries?: number;
  /** The longest `Retry-After` that is waited for, in seconds; default: 10. */
  longestPause?: number;
  /** Seconds until an attempt without an answer fails; default: 30. */
  timeout?: number;
  /** Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

// The parts of a call, as the code below sees them; callers see those of their path.
interface Parts {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  header?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
}

interface Process {
  env?: Record<string, string | undefined>;
  versions?: { node?: string };
}

const { process } = globalThis as { process?: Process };

/** A client of one Almanac, with one API key. */
export class Almanac {
  readonly baseUrl: string;
  readonly #key: string;
  readonly #retrying: { retries: number; longestPause: number };
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: Options = {}) {
    const baseUrl = options.baseUrl ?? process?.env?.["ALMANAC_URL"];
    const apiKey = options.apiKey ?? process?.env?.["ALMANAC_API_KEY"];
    if (!baseUrl) throw new TypeError("baseUrl is missing: pass it, or set ALMANAC_URL");
    if (!apiKey) throw new TypeError("apiKey is missing: pass it, or set ALMANAC_API_KEY");
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError("baseUrl begins with https:// or http://");
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.#key = apiKey;
    this.#retrying = { retries: options.retries ?? 2, longestPause: options.longestPause ?? 10 };
    this.#timeout = options.timeout ?? 30;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Read. */
  get<P extends PathsWith<"get">>(path: P, ...[init]: InitArguments<Init<P, "get">>): Promise<Answer<P, "get">> {
    return this.#call("get", path, init);
  }

  /** Create, or ask with a body. A creation is sent with an idempotency key of its own, or with yours. */
  post<P extends PathsWith<"post">>(path: P, ...[init]: InitArguments<Init<P, "post">>): Promise<Answer<P, "post">> {
    return this.#call("post", path, init);
  }

  /** Change the fields of the body. */
  patch<P extends PathsWith<"patch">>(
    path: P,
    ...[init]: InitArguments<Init<P, "patch">>
  ): Promise<Answer<P, "patch">> {
    return this.#call("patch", path, init);
  }

  /** Change. */
  put<P extends PathsWith<"put">>(path: P, ...[init]: InitArguments<Init<P, "put">>): Promise<Answer<P, "put">> {
    return this.#call("put", path, init);
  }

  /** Delete. */
  delete<P extends PathsWith<"delete">>(
    path: P,
    ...[init]: InitArguments<Init<P, "delete">>
  ): Promise<Answer<P, "delete">> {
    return this.#call("delete", path, init);
  }

  /** The pages of a list; each is requested when it is reached. `query.limit` is the length of a page. */
  async *pages<P extends ListPaths>(
    path: P,
    ...[init]: InitArguments<Init<P, "get">>
  ): AsyncGenerator<Page<P>, void, undefined> {
    const { query, ...rest }: Parts = init ?? {};
    let cursor: string | null | undefined;
    do {
      const parts = { ...rest, query: { limit: 200, ...query, ...(cursor == null ? {} : { cursor }) } };
      const page = await this.#call<Page<P> & { nextCursor?: string | null }>("get", path, parts);
      yield page;
      cursor = page.nextCursor;
    } while (cursor != null);
  }

  /** The rows of a list; it throws `Incomplete` at a page with calendars that could not be read. */
  async *rows<P extends ListPaths>(
    path: P,
    ...init: InitArguments<Init<P, "get">>
  ): AsyncGenerator<Awaited<Row<P>>, void, undefined> {
    for await (const page of this.pages(path, ...init)) yield* complete(page) as Row<P>[];
  }

  async #call<A>(method: Method, path: string, parts: Parts = {}): Promise<A> {
    const url = urlOf(this.baseUrl, path, parts.path, parts.query);
    const init = { method: method.toUpperCase(), ...this.#written(method, path, parts) };
    for (let attempt = 0; ; attempt += 1) {
      try {
        return (await this.#attempt(`${init.method} ${path}`, url, init, parts.signal)) as A;
      } catch (error) {
        if (!(error instanceof AlmanacError) || !isRepeatable(method, path)) throw error;
        const pause = pauseBefore(error, attempt, this.#retrying);
        if (pause === undefined) throw error;
        await sleep(pause, parts.signal);
      }
    }
  }

  #written(method: Method, path: string, parts: Parts): { headers: Headers; body?: string } {
    const headers = new Headers({ Authorization: `Bearer ${this.#key}` });
    // Browsers send a name of their own.
    if (process?.versions?.node) headers.set("User-Agent", `almanac-typescript/${VERSION}`);
    if (isCreation(method, path)) headers.set("Idempotency-Key", globalThis.crypto?.randomUUID?.() ?? randomKey());
    for (const [name, value] of Object.entries(parts.header ?? {})) {
      if (value !== undefined) headers.set(name, String(value));
    }
    if (parts.body === undefined) return { headers };
    headers.set("Content-Type", "application/json");
    return { headers, body: JSON.stringify(parts.body) };
  }

  async #attempt(call: string, url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<unknown> {
    const { response, text } = await this.#answer(call, url, init, signal);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      throw new Unreadable(`${call} was answered ${response.status} by something that is not Almanac`, { response });
    }
    if (!response.ok) throw errorOf(response, body, call);
    if (!isAlmanacs(body)) throw new Unreadable(`${call} was answered by something that is not Almanac`, { response });
    return body;
  }

  async #answer(
    call: string,
    url: string,
    init: RequestInit,
    signal: AbortSignal | undefined,
  ): Promise<{ response: Response; text: string }> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const end = () => controller.abort(signal?.reason);
    const timer = setTimeout(() => controller.abort(new Error(`no answer within ${this.#timeout} s`)), this.#timeout * 1000);
    signal?.addEventListener("abort", end, { once: true });
    try {
      // Almanac never redirects, and a key must be sent to one host only.
      const response = await this.#fetch(url, { ...init, redirect: "manual", signal: controller.signal });
      return { response, text: await response.text() };
    } catch (error) {
      signal?.throwIfAborted();
      throw new NoAnswer(`${call} got no answer: ${reasonOf(error)}`, undefined, { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  }
}

/** Why no answer came: Node.js puts it below its own "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
}

/** An idempotency key where `crypto` is missing: Node.js 18, and pages without TLS. */
function randomKey(): string {
  return `${Date.now().toString(36)}-${Array.from({ length: 3 }, () => Math.random().toString(36).slice(2)).join("")}`;
}
