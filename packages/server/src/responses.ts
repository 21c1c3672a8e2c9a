import { z } from "@hono/zod-openapi";

import { problemSchema } from "./schemas.ts";

interface DescribedResponse {
  description: string;
  content: { "application/json": { schema: z.ZodType } };
}

/** A JSON response in the OpenAPI document. */
export function json(schema: z.ZodType, description: string): DescribedResponse {
  return { description, content: { "application/json": { schema } } };
}

/** The body of a request, for validation and for the OpenAPI document. */
export function body<T extends z.ZodType>(
  schema: T,
): { required: true; content: { "application/json": { schema: T } } } {
  return { required: true, content: { "application/json": { schema } } };
}

interface DescribedProblem {
  description: string;
  content: { "application/problem+json": { schema: z.ZodType } };
}

const problem = (description: string): DescribedProblem => ({
  description: `${description}. A problem (RFC 9457), identified by its \`code\``,
  content: { "application/problem+json": { schema: problemSchema } },
});

/** The problems of any request. */
export const problems: { "4XX": DescribedProblem; "5XX": DescribedProblem } = {
  "4XX": problem("The request is invalid or not allowed, or the lock is held or lost"),
  "5XX": problem("The engine is unavailable, or the service drains"),
};

/** The query of a route without parameters. */
export const noQuery: z.ZodObject = z.strictObject({});
