import { isDeepStrictEqual } from 'node:util'

import type { ModelComparison, ModelDifferenceFound } from '../../channel/messages/model.ts'
import type { ModelContents } from './model-contents.ts'

type Records = ReadonlyMap<string, unknown>

/** Differences between the models of the router and a controller, up to a limit. */
export function compareModels(
  own: ModelContents,
  theirs: ModelContents,
  differencesMax: number,
): ModelComparison {
  const differences: ModelDifferenceFound[] = []
  const [ownKinds, theirKinds] = [kindsOf(own), kindsOf(theirs)]
  for (const [kind, records] of Object.entries(theirKinds)) {
    for (const found of compareKind(kind, ownKinds[kind] ?? new Map(), records)) {
      if (differences.length >= differencesMax) break
      differences.push(found)
    }
  }
  return { own: countsOf(ownKinds), theirs: countsOf(theirKinds), differences }
}

function* compareKind(kind: string, own: Records, theirs: Records): Iterable<ModelDifferenceFound> {
  for (const [id, record] of theirs) {
    if (!own.has(id)) yield { kind, id, difference: 'removed', detail: 'the router lacks it' }
    else if (!isDeepStrictEqual(own.get(id), record)) {
      yield { kind, id, difference: 'modified', detail: 'the router has another one' }
    }
  }
  for (const id of own.keys()) {
    if (!theirs.has(id)) yield { kind, id, difference: 'added', detail: 'only the router has it' }
  }
}

/** Record kinds by the names that controllers show. */
function kindsOf(contents: ModelContents): Readonly<Record<string, Records>> {
  const byId = (table: { values(): Iterable<{ readonly id: string }> }): Records =>
    new Map(Array.from(table.values(), (record) => [record.id, record]))
  return {
    configType: byId(contents.configTypes),
    config: byId(contents.configs),
    identity: byId(contents.identities),
    service: byId(contents.services),
    router: byId(contents.routers),
    'posture-check': byId(contents.postureChecks),
    'service-policy': contents.policies,
    'public-keys': contents.publicKeys,
    revocations: contents.revocations,
  }
}

function countsOf(kinds: Readonly<Record<string, Records>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(kinds).map(([kind, { size }]) => [kind, size]))
}
