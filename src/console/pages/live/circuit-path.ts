/** The names of a circuit's routers, in path order: `router1 → router2`. */
export function circuitPathText(path: unknown): string {
  return pathRouters(path)
    .map(({ name, id }) => (name === '' ? id : name))
    .join(' → ')
}

export interface PathRouter {
  readonly id: string
  readonly name: string
}

/** The routers of a circuit's path, in order. */
export function pathRouters(path: unknown): readonly PathRouter[] {
  const { nodes } = (path ?? {}) as { readonly nodes?: unknown }
  if (!Array.isArray(nodes)) return []
  return nodes.flatMap((node: unknown) => {
    const { id, name } = (node ?? {}) as { readonly id?: unknown; readonly name?: unknown }
    return typeof id === 'string' ? [{ id, name: typeof name === 'string' ? name : '' }] : []
  })
}
