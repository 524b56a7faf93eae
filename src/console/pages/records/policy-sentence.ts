import { visibleText } from '../../app/visible-text.ts'
import { texts } from '../../texts.ts'
import { type Draft, isObject } from './json-values.ts'
import { findKindAtPath } from './kinds.ts'

/** The fields with roles of a policy and the kinds that they select, in the order of a sentence. */
const sides: Readonly<Record<string, readonly (readonly [field: string, path: string])[]>> = {
  'service-policies': [
    ['identityRoles', 'identities'],
    ['serviceRoles', 'services'],
  ],
  'edge-router-policies': [
    ['identityRoles', 'identities'],
    ['edgeRouterRoles', 'edge-routers'],
  ],
  'service-edge-router-policies': [
    ['serviceRoles', 'services'],
    ['edgeRouterRoles', 'edge-routers'],
  ],
}

/**
 * A sentence about the access that a policy grants; '' for other kinds.
 * @param end when the policy ends or has ended, in words; null if it has no end.
 */
export function policySentence(path: string, policy: Draft, end: string | null): string {
  const [first, second] = sides[path] ?? []
  if (first === undefined || second === undefined) return ''
  const { policies } = texts
  for (const [field, kind] of [first, second]) {
    if (roleNames(policy, field).length > 0) continue
    return policies.nothing(findKindAtPath(kind)?.one ?? kind)
  }
  const verb = path === 'service-policies' ? String(policy['type']) : path
  const checks = path === 'service-policies' ? roleNames(policy, 'postureCheckRoles') : []
  const verbs = policies.verbs[verb]
  return policies.sentence({
    who: selectionText(policy, ...first),
    verb: (policy['isEnded'] === true ? verbs?.ended : verbs?.now) ?? verb,
    what: selectionText(policy, ...second),
    checks: checks.map((one) => (one === '#all' ? policies.everyCheck : one)),
    end,
  })
}

/** The names of the records and the attributes in a field with roles. */
function roleNames(policy: Draft, field: string): readonly string[] {
  const [roles, display] = [policy[field], policy[`${field}Display`]]
  const names = new Map(
    (Array.isArray(display) ? display : [])
      .filter(isObject)
      .map(({ role, name }) => [role, String(name).replace(/^@/, '')]),
  )
  return (Array.isArray(roles) ? roles.map(String) : []).map((role) =>
    visibleText(names.get(role) ?? role),
  )
}

function selectionText(policy: Draft, field: string, path: string): string {
  const kind = findKindAtPath(path)
  const names = roleNames(policy, field)
  return texts.policies.selection(
    names,
    policy['semantic'] === 'AllOf' && names.filter((name) => name.startsWith('#')).length > 1,
    kind?.many ?? path,
  )
}
