import type { S3Head, S3Put } from "holdfast/fencing";

export interface S3Object {
  head(): Promise<S3Head>;
  put(request: S3Put): Promise<unknown>;
  content(): Promise<string>;
}

export function s3Object(url: string): S3Object;
