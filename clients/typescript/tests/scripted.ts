// A server with scripted answers, which records the requests that it receives.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface Scripted {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Resets the connection instead of answering. */
export const RESET: Scripted = { status: 0 };
/** Never answers. */
export const SILENT: Scripted = { status: -1 };

export interface Seen {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export class Server {
  readonly seen: Seen[] = [];
  #answers: Scripted[] = [];
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      this.seen.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, body });
      const answer = (this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]) ?? RESET;
      if (answer === RESET) request.socket.resetAndDestroy();
      else if (answer !== SILENT) {
        response.writeHead(answer.status, { ...answer.headers, Connection: "close" });
        response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
      }
    });
  });

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The answers in their order; the last one is repeated. */
  says(...answers: Scripted[]): void {
    this.#answers = answers;
    this.seen.length = 0;
  }

  start(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
