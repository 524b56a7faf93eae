import type { NodeId } from '../../raft/types.ts'

/** The state digests that members hold at one index. */
export interface DigestsAtIndex {
  readonly selfId: NodeId
  readonly own: string
  /** Digests of other members, of which not all may have been heard. */
  readonly heard: ReadonlyMap<NodeId, string>
  readonly voters: readonly NodeId[]
}

/**
 * fine: a majority of the voters holds the state held here; `odd` are the members that do not. odd:
 * a majority agrees on another state, and `agreeing` hold it. tie: all voters were heard, and no
 * state has a majority. open: too few were.
 */
export type StateVerdict =
  | { readonly kind: 'fine'; readonly odd: readonly NodeId[] }
  | { readonly kind: 'odd'; readonly agreeing: readonly NodeId[] }
  | { readonly kind: 'tie' }
  | { readonly kind: 'open' }

/**
 * Judges whose state is the wrong one. Only a majority of the voters, agreeing at the very same
 * index, can tell: less than that may be the sick ones, and one member that is sick or lies would
 * take those who are well out of service.
 */
export function judgeState({ selfId, own, heard, voters }: DigestsAtIndex): StateVerdict {
  const all = new Map(heard).set(selfId, own)
  const holders = new Map<string, NodeId[]>()
  for (const id of new Set(voters)) {
    const digest = all.get(id)
    if (digest === undefined) continue
    holders.set(digest, [...(holders.get(digest) ?? []), id])
  }
  const votes = new Set(voters).size
  const majority = [...holders].find(([, ids]) => ids.length * 2 > votes)
  if (majority === undefined) {
    const isAllHeard = [...holders.values()].flat().length === votes
    return { kind: isAllHeard ? 'tie' : 'open' }
  }
  const [right, agreeing] = majority
  if (right !== own) return { kind: 'odd', agreeing: [...agreeing].sort() }
  const odd = [...heard].filter(([, digest]) => digest !== own).map(([id]) => id)
  return { kind: 'fine', odd: odd.sort() }
}
