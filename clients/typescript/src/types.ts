// Types of calls, derived from the types that are generated from the OpenAPI document.
import type { components, paths } from "./openapi.js";

export type { components, operations, paths } from "./openapi.js";

export type Schemas = components["schemas"];
export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have a method. */
export type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type OperationOf<P extends keyof paths, M extends Method> = M extends keyof paths[P] ? paths[P][M] : never;

type ParametersOf<O, Place extends string> = O extends { parameters: infer Places }
  ? Place extends keyof Places
    ? NonNullable<Places[Place]>
    : never
  : never;

type ContentOf<Body> = Body extends { content: { "application/json": infer Json } } ? Json : never;

// Distributes, so that an operation without a body has none here either.
type BodyOf<O> = O extends { requestBody?: infer Body } ? ContentOf<NonNullable<Body>> : never;

// A part of a call: required where one of its fields is, absent where the operation has none.
type Part<Name extends string, Value> = [Value] extends [never]
  ? { [N in Name]?: never }
  : Partial<Value> extends Value
    ? { [N in Name]?: Value }
    : { [N in Name]: Value };

/** What an operation takes: the parts of its URL, its headers and its body. */
export type Init<P extends keyof paths, M extends Method> = Part<"path", ParametersOf<OperationOf<P, M>, "path">> &
  Part<"query", ParametersOf<OperationOf<P, M>, "query">> &
  Part<"header", ParametersOf<OperationOf<P, M>, "header">> &
  Part<"body", BodyOf<OperationOf<P, M>>> & {
    /** Ends the call, also while it waits for a retry. */
    signal?: AbortSignal;
  };

/** The same as an argument, which may be left out where nothing in it is required. */
export type InitArguments<I> = Partial<I> extends I ? [init?: I] : [init: I];

type Json<O, Status extends number> = O extends {
  responses: Record<Status, { content: { "application/json": infer Body } }>;
}
  ? Body
  : never;

/** What an operation answers when it succeeds. */
export type Answer<P extends keyof paths, M extends Method> =
  | Json<OperationOf<P, M>, 200>
  | Json<OperationOf<P, M>, 201>;

type NamesIn<O, Place extends string> = [ParametersOf<O, Place>] extends [never]
  ? never
  : keyof ParametersOf<O, Place>;

/** The lists that come in pages. */
export type ListPaths = {
  [P in PathsWith<"get">]: "cursor" extends NamesIn<OperationOf<P, "get">, "query"> ? P : never;
}[PathsWith<"get">];

/** The creations that an idempotency key makes safe to repeat. */
export type KeyedPaths = {
  [P in PathsWith<"post">]: "Idempotency-Key" extends NamesIn<OperationOf<P, "post">, "header"> ? P : never;
}[PathsWith<"post">];

/** A page of a list, and its rows. */
export type Page<P extends ListPaths> = Extract<Answer<P, "get">, { data: readonly unknown[] }>;
export type Row<P extends ListPaths> = Page<P>["data"][number];
