export interface LayoutRequest {
  readonly nodes: readonly string[]
  readonly links: readonly (readonly [string, string])[]
}

export type NodePositions = readonly (readonly [string, number, number])[]

const SPREAD = 60

/** Initial position, derived from the id, so that the layout is the same each time. */
export function initialNodePosition(id: string, at: number): { x: number; y: number } {
  let hash = 2_166_136_261
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619)
  const angle = ((hash >>> 0) / 2 ** 32) * 2 * Math.PI
  const radius = SPREAD * Math.sqrt(at + 1)
  return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) }
}
