import type { NodeId } from '../../raft/types.ts'

/** State digests of members at one index. */
export interface DigestsAtIndex {
  readonly selfId: NodeId
  readonly own: string
  /** Digests of other members, possibly not all of them. */
  readonly heard: ReadonlyMap<NodeId, string>
  readonly voters: readonly NodeId[]
}

/**
 * fine: a majority of the voters has this controller's state; `odd` are the members that differ.
 * odd: a majority agrees on another state; `agreeing` have it. tie: all voters answered, and no
 * state has a majority. open: too few voters answered.
 */
export type StateVerdict =
  | { readonly kind: 'fine'; readonly odd: readonly NodeId[] }
  | { readonly kind: 'odd'; readonly agreeing: readonly NodeId[] }
  | { readonly kind: 'tie' }
  | { readonly kind: 'open' }

/**
 * Decides whose state is wrong. Only a majority of the voters that agree at the same index can
 * tell. A smaller group may itself be faulty, and one faulty or malicious member could take healthy
 * ones out of service.
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
