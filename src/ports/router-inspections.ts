/** What a router told of itself; a value is JSON, or text where it is none. */
export interface RouterInspection {
  readonly values: readonly { readonly name: string; readonly value: unknown }[]
  readonly errors: readonly string[]
}

/** Values that connected routers tell of themselves. */
export interface RouterInspections {
  /** Never rejects: a router that does not answer in time is an error among `errors`. */
  inspect(routerId: string, names: readonly string[]): Promise<RouterInspection>
}
