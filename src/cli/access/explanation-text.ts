import { formatTable } from '../terminal/output.ts'
import type {
  ExplainedPostureCheck,
  ExplainedPolicyMatch,
  ExplainedPair,
  ExplainedPairRight,
  ExplainedRecord,
} from './explained-pair.ts'

/**
 * Explains whether an identity can reach a service, and lists the policies in the response that
 * connect the two.
 */
export function explainedPairText(pair: ExplainedPair): string {
  const lines = [
    `${pair.identity.name} -> ${pair.service.name}`,
    ...rightLines('dial', pair.dial, pair),
    ...rightLines('bind', pair.bind, pair),
    ...(pair.dial.isGranted || pair.bind.isGranted ? wayLines(pair) : []),
    ...(pair.configs ?? []).flatMap(({ name, notIntercepted = [] }) =>
      notIntercepted.map((fault) => `config ${name}: tunnels do not intercept all of it: ${fault}`),
    ),
    ...(pair.withheld.length === 0 ? [] : [`not shown, for lack of ${pair.withheld.join(', ')}`]),
  ]
  return lines.join('\n')
}

/** One line for each pair. `listed` selects whether the lines name the identity or the service. */
export function explainedPairLines(
  pairs: readonly ExplainedPair[],
  listed: 'identity' | 'service',
): string {
  if (pairs.length === 0) return 'no pair'
  const rows = pairs.map((pair) => [
    pair[listed].name,
    stateText(pair.dial),
    stateText(pair.bind),
    firstMissing(pair),
  ])
  return formatTable([listed, 'dial', 'bind', 'first missing'], rows)
}

function stateText({ isGranted, isReachable }: ExplainedPairRight): string {
  if (isReachable) return 'yes'
  return isGranted ? 'granted, unreachable' : 'no'
}

/**
 * The first obstacle between identity and service. Obstacles to a right that a policy grants come
 * before obstacles to a dial right that no policy grants.
 */
function firstMissing({ dial, bind }: ExplainedPair): string {
  const broken = [dial, bind].find(({ isGranted, isReachable }) => isGranted && !isReachable)
  const shown = broken ?? (dial.isGranted || bind.isGranted ? null : dial)
  return shown?.missing[0]?.message ?? '-'
}

function rightLines(word: string, right: ExplainedPairRight, pair: ExplainedPair): string[] {
  const policies = right.policies ?? []
  const more = (right.policiesCount ?? 0) - policies.length
  return [
    `${word}: ${stateText(right)}${endText(right)}`,
    ...policies.flatMap((policy) => [
      `  policy ${policy.name}: ${linkText(policy, pair)}`,
      ...(policy.checks ?? []).map(checkText),
    ]),
    ...(more > 0 ? [`  and ${more} more policies`] : []),
    ...right.missing.map(
      ({ code, message, records }) => `  missing ${code}: ${message}${namesText(records, pair)}`,
    ),
    ...nearestLines(right, pair),
  ]
}

function endText({ endsAt }: ExplainedPairRight): string {
  return typeof endsAt === 'string' ? `, until ${endsAt}` : ''
}

function nearestLines(
  { nearestPolicy }: ExplainedPairRight,
  { identity, service }: ExplainedPair,
): string[] {
  if (nearestPolicy === null || nearestPolicy === undefined) return []
  const { name, identityLacks, serviceLacks } = nearestPolicy
  const lacks = (record: ExplainedRecord, attributes: readonly string[]): string[] =>
    attributes.length === 0
      ? []
      : [`${record.name} lacks ${attributes.map((one) => `#${one}`).join(', ')}`]
  const lacking = [...lacks(identity, identityLacks), ...lacks(service, serviceLacks)]
  return [`  nearest policy ${name}: ${lacking.join('; ')}`]
}

/** The names of the records, except the identity and the service of the pair. */
function namesText(
  records: readonly ExplainedRecord[],
  { identity, service }: ExplainedPair,
): string {
  const others = records.filter(({ id }) => id !== identity.id && id !== service.id)
  return others.length === 0 ? '' : `: ${others.map(({ name, id }) => name || id).join(', ')}`
}

function checkText({ name, typeId, state, passing, failing }: ExplainedPostureCheck): string {
  const sessions = passing + failing
  const counts = sessions < 2 ? '' : ` in ${passing} of ${sessions} API sessions`
  const text = state === 'unknown' ? 'unknown, no API session' : `${state}${counts}`
  return `    posture check ${name} (${typeId}): ${text}`
}

/**
 * For example `#staff -> @crm`: the roles with which a service policy selects the identity and the
 * service; a router policy shows edge routers in place of the side that it does not select.
 */
function linkText(link: ExplainedPolicyMatch, pair: ExplainedPair): string {
  const lists = [link.identityRoles, link.serviceRoles, link.edgeRouterRoles]
  const sides = lists.flatMap((roles) =>
    roles === undefined ? [] : [roles.map((role) => roleText(role, pair)).join(' ')],
  )
  return `${sides.join(' -> ')} (${link.semantic})`
}

function roleText(role: string, { identity, service, routers }: ExplainedPair): string {
  if (!role.startsWith('@')) return role
  const known = [identity, service, ...(routers?.common ?? [])]
  const named = known.find(({ id }) => id === role.slice(1))
  return named === undefined ? role : `@${named.name}`
}

function wayLines(pair: ExplainedPair): string[] {
  const { routers, terminators } = pair
  const lines: string[] = []
  const online = (isOnline: boolean): string => (isOnline ? 'online' : 'offline')
  if (routers !== null && routers.common.length > 0) {
    const shown = routers.common.map(({ name, isOnline }) => `${name} (${online(isOnline)})`)
    const more = routers.commonCount - shown.length
    lines.push(
      `edge routers: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
      ...(routers.identityPolicies ?? []).map(
        (policy) => `  edge router policy ${policy.name}: ${linkText(policy, pair)}`,
      ),
      ...(routers.servicePolicies ?? []).map(
        (policy) => `  service edge router policy ${policy.name}: ${linkText(policy, pair)}`,
      ),
    )
  }
  if (terminators !== null && terminators.items.length > 0) {
    const more = terminators.totalCount - terminators.items.length
    lines.push(
      'terminators:',
      ...terminators.items.map(
        ({ address, router, isOnline }) =>
          `  ${address}${router === null ? '' : ` at ${router.name}`} (${online(isOnline)})`,
      ),
      ...(more > 0 ? [`  and ${more} more`] : []),
    )
  }
  return lines
}
