// The client: typed calls by path, with retries, errors and pages.
import { complete } from "./answers.js";
import { AlmanacError, NoAnswer, Unreadable, errorOf, isAlmanacs } from "./errors.js";
import { isCreation, isRepeatable, pauseBefore, sleep } from "./retries.js";
import { urlOf } from "./url.js";
import { VERSION } from "./version.js";
const { process } = globalThis;
/** A client of one Almanac, with one API key. */
export class Almanac {
    baseUrl;
    #key;
    #retrying;
    #timeout;
    #fetch;
    constructor(options = {}) {
        const baseUrl = options.baseUrl ?? process?.env?.["ALMANAC_URL"];
        const apiKey = options.apiKey ?? process?.env?.["ALMANAC_API_KEY"];
        if (!baseUrl)
            throw new TypeError("baseUrl is missing: pass it, or set ALMANAC_URL");
        if (!apiKey)
            throw new TypeError("apiKey is missing: pass it, or set ALMANAC_API_KEY");
        if (!/^https?:\/\//.test(baseUrl))
            throw new TypeError("baseUrl begins with https:// or http://");
        this.baseUrl = baseUrl.replace(/\/+$/, "");
        this.#key = apiKey;
        this.#retrying = { retries: options.retries ?? 2, longestPause: options.longestPause ?? 10 };
        this.#timeout = options.timeout ?? 30;
        this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    }
    /** Read. */
    get(path, ...[init]) {
        return this.#call("get", path, init);
    }
    /** Create, or ask with a body. A creation is sent with an idempotency key of its own, or with yours. */
    post(path, ...[init]) {
        return this.#call("post", path, init);
    }
    /** Change the fields of the body. */
    patch(path, ...[init]) {
        return this.#call("patch", path, init);
    }
    /** Change. */
    put(path, ...[init]) {
        return this.#call("put", path, init);
    }
    /** Delete. */
    delete(path, ...[init]) {
        return this.#call("delete", path, init);
    }
    /** The pages of a list; each is requested when it is reached. `query.limit` is the length of a page. */
    async *pages(path, ...[init]) {
        const { query, ...rest } = init ?? {};
        let cursor;
        do {
            const parts = { ...rest, query: { limit: 200, ...query, ...(cursor == null ? {} : { cursor }) } };
            const page = await this.#call("get", path, parts);
            yield page;
            cursor = page.nextCursor;
        } while (cursor != null);
    }
    /** The rows of a list; it throws `Incomplete` at a page with calendars that could not be read. */
    async *rows(path, ...init) {
        for await (const page of this.pages(path, ...init))
            yield* complete(page);
    }
    async #call(method, path, parts = {}) {
        const url = urlOf(this.baseUrl, path, parts.path, parts.query);
        const init = { method: method.toUpperCase(), ...this.#written(method, path, parts) };
        for (let attempt = 0;; attempt += 1) {
            try {
                return (await this.#attempt(`${init.method} ${path}`, url, init, parts.signal));
            }
            catch (error) {
                if (!(error instanceof AlmanacError) || !isRepeatable(method, path))
                    throw error;
                const pause = pauseBefore(error, attempt, this.#retrying);
                if (pause === undefined)
                    throw error;
                await sleep(pause, parts.signal);
            }
        }
    }
    #written(method, path, parts) {
        const headers = new Headers({ Authorization: `Bearer ${this.#key}` });
        // Browsers send a name of their own.
        if (process?.versions?.node)
            headers.set("User-Agent", `almanac-typescript/${VERSION}`);
        if (isCreation(method, path))
            headers.set("Idempotency-Key", globalThis.crypto?.randomUUID?.() ?? randomKey());
        for (const [name, value] of Object.entries(parts.header ?? {})) {
            if (value !== undefined)
                headers.set(name, String(value));
        }
        if (parts.body === undefined)
            return { headers };
        headers.set("Content-Type", "application/json");
        return { headers, body: JSON.stringify(parts.body) };
    }
    async #attempt(call, url, init, signal) {
        const { response, text } = await this.#answer(call, url, init, signal);
        let body;
        try {
            body = JSON.parse(text);
        }
        catch {
            throw new Unreadable(`${call} was answered ${response.status} by something that is not Almanac`, { response });
        }
        if (!response.ok)
            throw errorOf(response, body, call);
        if (!isAlmanacs(body))
            throw new Unreadable(`${call} was answered by something that is not Almanac`, { response });
        return body;
    }
    async #answer(call, url, init, signal) {
        signal?.throwIfAborted();
        const controller = new AbortController();
        const end = () => controller.abort(signal?.reason);
        const timer = setTimeout(() => controller.abort(new Error(`no answer within ${this.#timeout} s`)), this.#timeout * 1000);
        signal?.addEventListener("abort", end, { once: true });
        try {
            // Almanac never redirects, and a key must be sent to one host only.
            const response = await this.#fetch(url, { ...init, redirect: "manual", signal: controller.signal });
            return { response, text: await response.text() };
        }
        catch (error) {
            signal?.throwIfAborted();
            throw new NoAnswer(`${call} got no answer: ${reasonOf(error)}`, undefined, { cause: error });
        }
        finally {
            clearTimeout(timer);
            signal?.removeEventListener("abort", end);
        }
    }
}
/** Why no answer came: Node.js puts it below its own "fetch failed". */
function reasonOf(error) {
    if (!(error instanceof Error))
        return String(error);
    return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
}
/** An idempotency key where `crypto` is missing: Node.js 18, and pages without TLS. */
function randomKey() {
    return `${Date.now().toString(36)}-${Array.from({ length: 3 }, () => Math.random().toString(36).slice(2)).join("")}`;
}
