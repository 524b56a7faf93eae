import type { Position } from '../../raft/types.ts'
import type { SurvivingMemberFacts, SurvivorMember } from './survivor.ts'
import { isNonNegativeInteger, isJsonObject } from '../../lib/text/json-value.ts'

const MEMBERS_MAX = 256
const TEXT_MAX = 1024

/**
 * Decodes the facts about a surviving member from JSON.
 * @throws {Error} that names the malformed field.
 */
export function decodeSurvivor(value: unknown): SurvivingMemberFacts {
  const found = objectIn(value, 'the file')
  const count = (key: string): number => countIn(found, key)
  const { members, finding, fencedBy } = found
  if (!Array.isArray(members) || members.length === 0 || members.length > MEMBERS_MAX)
    throw new Error('members is no list')
  return {
    id: textIn(found, 'id'),
    clusterId: textIn(found, 'clusterId'),
    generation: count('generation'),
    term: count('term'),
    last: positionOf(found['last']),
    lastMs: count('lastMs'),
    commit: count('commit'),
    members: members.map(memberOf),
    configurationIndex: count('configurationIndex'),
    finding: finding === null ? null : textIn(found, 'finding'),
    fencedBy: fencedBy === null ? null : count('fencedBy'),
  }
}

type Fields = Readonly<Record<string, unknown>>

function positionOf(value: unknown): Position {
  const found = objectIn(value, 'last')
  return { term: countIn(found, 'term'), index: countIn(found, 'index') }
}

function memberOf(value: unknown): SurvivorMember {
  const found = objectIn(value, 'members')
  if (typeof found['isVoter'] !== 'boolean') throw new Error('isVoter is neither true nor false')
  return { id: textIn(found, 'id'), isVoter: found['isVoter'], address: textIn(found, 'address') }
}

function objectIn(value: unknown, what: string): Fields {
  if (isJsonObject(value)) return value
  throw new Error(`${what} is no object`)
}

function textIn(found: Fields, key: string): string {
  const value = found[key]
  if (typeof value === 'string' && value.length <= TEXT_MAX) return value
  throw new Error(`${key} is no text`)
}

function countIn(found: Fields, key: string): number {
  const value = found[key]
  if (isNonNegativeInteger(value)) return value
  throw new Error(`${key} is no whole number`)
}
