import type { HttpMethod } from '../../client/cluster-client.ts'
import type { ShapeCheck } from './response-shape.ts'

/** Requests to the management API, as `flotilla apply` and the console's import send them. */
export interface RecordApi {
  /** @throws {ApiRefusal} when a controller refuses the request. */
  ask<T = unknown>(
    request: { readonly method: HttpMethod; readonly path: string; readonly body?: unknown },
    shape?: ShapeCheck<T>,
  ): Promise<{ readonly data: T; readonly header: (name: string) => string | null }>
}
