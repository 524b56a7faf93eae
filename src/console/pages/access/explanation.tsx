import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'
import { sortByName } from '../../app/name-order.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { expiryText } from '../../controls/expiry-input.tsx'
import { Icon } from '../../controls/icon.tsx'
import type { BadgeTone } from '../../controls/badge-tone.ts'
import { Badge } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { quoteFilterText } from '../records/filters.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { readRows, ROWS_MAX } from '../records/record-data.ts'
import { useIdentityNames } from '../records/record-names.ts'
import type {
  AccessExplained,
  AccessExplainedIdentity as Ref,
  AccessExplainedRoutersIdentityPolicies,
} from '../../client/served-types.ts'
import { type AccessDirection, recordReferenceText } from './explain-data.ts'
import { NearestPolicyPanel } from './nearest-policy-panel.tsx'
import { OnlineState, RouterState } from '../records/record-state.tsx'

type DirectionPolicy = NonNullable<AccessDirection['policies']>[number]
type PolicyRef = AccessExplainedRoutersIdentityPolicies & Partial<Pick<DirectionPolicy, 'checks'>>
type CheckRef = NonNullable<DirectionPolicy['checks']>[number]

type Side = 'dial' | 'bind'

/**
 * Explains the access of one identity to one service: each requirement, and the reason why it is
 * met or not.
 */
export function Explanation({
  row,
  onChanged,
}: {
  readonly row: AccessExplained
  readonly onChanged: () => void
}) {
  const { access } = texts
  const startsWithBind = row.bind.isGranted && !row.dial.isGranted
  const side = useSignal<Side>(startsWithBind ? 'bind' : 'dial')
  const direction = row[side.value]
  return (
    <>
      <div class="segments" role="group" aria-label={access.direction}>
        {(['dial', 'bind'] as const).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={side.value === one}
            onClick={() => (side.value = one)}
          >
            {access.sides[one]}
          </button>
        ))}
      </div>
      <Verdict row={row} side={side.value} direction={direction} onChanged={onChanged} />
      <section class="panel" aria-labelledby="chain">
        <div class="panel-head">
          <h2 id="chain">{access.chain}</h2>
        </div>
        <ol class="chain">
          <IdentityLink row={row} />
          <PolicyLink row={row} direction={direction} side={side.value} />
          <ServiceLink row={row} side={side.value} />
        </ol>
      </section>
      <Routers row={row} direction={direction} />
      {row.withheld.length === 0 ? null : (
        <p class="faint small">{access.withheld(row.withheld)}</p>
      )}
    </>
  )
}

function Verdict(props: {
  readonly row: AccessExplained
  readonly side: Side
  readonly direction: AccessDirection
  readonly onChanged: () => void
}) {
  const { access } = texts
  const { row, side, direction, onChanged } = props
  const [identity, service] = [recordReferenceText(row.identity), recordReferenceText(row.service)]
  const { missing, isReachable } = direction
  return (
    <section class={`panel verdict ${isReachable ? 'good' : 'bad'}`} aria-live="polite">
      <Icon name={isReachable ? 'check' : 'close'} size={20} />
      <div>
        <h2>
          {isReachable ? access.yes[side](identity, service) : access.no[side](identity, service)}
        </h2>
        {isReachable ? (
          <p>
            {row.identityState.canLogIn && row.identityState.hasOutstandingEnrollment
              ? access.notNeeded
              : access.nothingMissing}
          </p>
        ) : (
          <ol class="missing">
            {missing.map(({ code, message, records }, at) => (
              <li key={code}>
                <span>
                  {at === 0 && missing.length > 1 ? <strong>{access.first} </strong> : null}
                  {message}
                </span>
                <RefLinks refs={records} />
              </li>
            ))}
          </ol>
        )}
        <NearestPolicyPanel row={row} direction={direction} onChanged={onChanged} />
      </div>
    </section>
  )
}

function RefLinks({ refs }: { readonly refs: readonly Ref[] }) {
  if (refs.length === 0) return null
  return (
    <span class="ref-links">
      {refs.map((one) => (
        <RefLink key={`${one.entity}/${one.id}`} one={one} />
      ))}
    </span>
  )
}

function RefLink({ one }: { readonly one: Ref }) {
  const { entity } = one
  if (findKindAtPath(entity) === null) return <>{recordReferenceText(one)}</>
  return <a href={consolePath(entity, one.id)}>{recordReferenceText(one)}</a>
}

/** One requirement for access: its name, whether it is met, and the reason. */
function ChainLink(props: {
  readonly title: string
  readonly holds: boolean
  readonly head: ComponentChildren
  readonly children?: ComponentChildren
}) {
  return (
    <li class={`chain-link ${props.holds ? '' : 'broken'}`}>
      <div class="chain-title">
        <Icon name={props.holds ? 'check' : 'close'} size={14} />
        {props.title}
        <span class="visually-hidden">
          {props.holds ? texts.access.holds : texts.access.doesNotHold}
        </span>
      </div>
      <div class="chain-head">{props.head}</div>
      {props.children}
    </li>
  )
}

function IdentityLink({ row }: { readonly row: AccessExplained }) {
  const { access } = texts
  const { identity, identityState } = row
  const isBroken = identityState.isDisabled || !identityState.canLogIn
  return (
    <ChainLink title={access.identity} holds={!isBroken} head={<RefLink one={identity} />}>
      <div class="chips">
        {identityState.isDisabled ? <Badge tone="bad">{texts.cell.disabled}</Badge> : null}
        {identityState.hasApiSession ? <Badge tone="good">{texts.cell.loggedIn}</Badge> : null}
        {identityState.canLogIn ? null : <Badge tone="bad">{access.noLogIn}</Badge>}
        {identityState.hasOutstandingEnrollment ? <Badge>{access.enrolling}</Badge> : null}
      </div>
    </ChainLink>
  )
}

function PolicyLink({
  row,
  direction,
  side,
}: {
  readonly row: AccessExplained
  readonly direction: AccessDirection
  readonly side: Side
}) {
  const { access } = texts
  const { policies, policiesCount, isGranted } = direction
  const fails = direction.missing.some(({ code }) => code === 'POSTURE_FAILS')
  return (
    <ChainLink
      title={access.policies[side]}
      holds={isGranted && !fails}
      head={policiesCount === null ? '' : access.policiesOf(policiesCount)}
    >
      {policies === null ? (
        <p class="faint small">{access.hidden}</p>
      ) : (
        <Policies row={row} policies={policies} />
      )}
      {typeof direction.endsAt === 'string' ? (
        <p class="small">{expiryText(direction.endsAt)}</p>
      ) : null}
    </ChainLink>
  )
}

function Policies({
  row,
  policies,
}: {
  readonly row: AccessExplained
  readonly policies: readonly PolicyRef[]
}) {
  return (
    <ul class="policies">
      {policies.map((policy) => (
        <li key={policy.id}>
          <RefLink one={policy} />
          <Roles row={row} policy={policy} />
          <Checks checks={policy.checks ?? []} />
        </li>
      ))}
    </ul>
  )
}

/** The roles of the policy that match this pair. */
function Roles({ row, policy }: { readonly row: AccessExplained; readonly policy: PolicyRef }) {
  const { identityRoles = [], serviceRoles = [], edgeRouterRoles = [] } = policy
  const roles = [...identityRoles, ...serviceRoles, ...edgeRouterRoles]
  if (roles.length === 0) return null
  return (
    <span class="chips">
      <span class="faint tiny">{texts.access.by}</span>
      {[...new Set(roles)].map((role) => (
        <span class="chip" key={role}>
          <span>{roleText(role, row)}</span>
        </span>
      ))}
    </span>
  )
}

/** A role as text: `@laptop` instead of the id, if the id is that of a record on the page. */
function roleText(role: string, { identity, service, routers }: AccessExplained): string {
  if (!role.startsWith('@')) return role
  const known = [identity, service, ...(routers?.common ?? [])]
  const named = known.find(({ id }) => id === role.slice(1))
  return named === undefined ? role : `@${recordReferenceText(named)}`
}

const checkTones: Readonly<Record<CheckRef['state'], BadgeTone>> = {
  passes: 'good',
  fails: 'bad',
  unknown: 'plain',
}

function Checks({ checks }: { readonly checks: readonly CheckRef[] }) {
  if (checks.length === 0) return null
  return (
    <span class="chips">
      {checks.map((check) => (
        <Badge key={check.id} tone={checkTones[check.state]}>
          {texts.access.check(recordReferenceText(check), check.state)}
        </Badge>
      ))}
    </span>
  )
}

function ServiceLink({ row, side }: { readonly row: AccessExplained; readonly side: Side }) {
  const { access } = texts
  const { service, terminators } = row
  const holds = side === 'bind' || terminators === null || terminators.onlineCount > 0
  return (
    <ChainLink title={access.service} holds={holds} head={<RefLink one={service} />}>
      {terminators === null ? (
        <p class="faint small">{access.hidden}</p>
      ) : (
        <>
          <p class="small soft">
            {access.terminators(terminators.onlineCount, terminators.totalCount)}
          </p>
          <Terminators serviceId={service.id} items={terminators.items} />
        </>
      )}
      {(row.configs ?? []).flatMap((config) =>
        (config.notIntercepted ?? []).map((fault) => (
          <p class="small" key={`${config.id} ${fault}`}>
            <Badge tone="warn">{access.notIntercepted}</Badge> <RefLink one={config} /> {fault}
          </p>
        )),
      )}
    </ChainLink>
  )
}

type Terminator = NonNullable<AccessExplained['terminators']>['items'][number]

/** The terminators of a service, by the identity that hosts it. */
function Terminators(props: { readonly serviceId: string; readonly items: readonly Terminator[] }) {
  const { access } = texts
  const { serviceId, items } = props
  const loaded = useLoadedData(`hosts/${serviceId}/${items.length}`, async (signal) => {
    const filter = `service = ${quoteFilterText(serviceId)}`
    const { rows } = await readRows('terminators', filter, signal, ROWS_MAX, FABRIC_API_PATH)
    return new Map(rows.map((row) => [row.id, String(row['hostId'] ?? '')]))
  })
  // Without the permission to read hosts, the terminators are in one group.
  const hosts = loaded.data.value
  const hostOf = ({ id }: Terminator): string => hosts?.get(id) ?? ''
  const ids = [...new Set(items.map(hostOf))]
  const names = useIdentityNames(ids)
  const nameOf = (id: string): string => visibleText(names.get(id) ?? access.hostedByRouter)
  return (
    <ul class="policies">
      {sortByName(ids, nameOf).map((id) => (
        <li key={id}>
          {names.has(id) ? (
            <a href={consolePath('identities', id)}>{nameOf(id)}</a>
          ) : (
            <span>{id === '' ? access.hostUnknown : nameOf(id)}</span>
          )}
          {[true, false].map((isOnline) => (
            <TerminatorLinks
              key={String(isOnline)}
              isOnline={isOnline}
              items={items.filter((one) => hostOf(one) === id && one.isOnline === isOnline)}
            />
          ))}
        </li>
      ))}
    </ul>
  )
}

function TerminatorLinks(props: {
  readonly isOnline: boolean
  readonly items: readonly Terminator[]
}) {
  if (props.items.length === 0) return null
  const links = props.items.map(({ id, router, binding, address }) => ({
    id,
    text: texts.access.terminatorAt(
      router === null ? '' : recordReferenceText(router),
      // Omits the address of a terminator with the binding `edge`, because this address is only
      // an ID.
      binding === 'edge' ? '' : address,
    ),
  }))
  return (
    <span class="chips">
      <OnlineState isOnline={props.isOnline} />
      {sortByName(links, ({ text }) => text).map(({ id, text }) => (
        <a key={id} href={consolePath('terminators', id)}>
          {text}
        </a>
      ))}
    </span>
  )
}

/**
 * The edge routers for the access: those that the identity may use, those that the service may use,
 * and those that both may use.
 */
function Routers({
  row,
  direction,
}: {
  readonly row: AccessExplained
  readonly direction: AccessDirection
}) {
  const { access } = texts
  const { routers } = row
  const isMissing = direction.missing.some(({ code }) => code.includes('ROUTER'))
  return (
    <section class="panel" aria-labelledby="routers">
      <div class="panel-head">
        <h2 id="routers">{access.routers}</h2>
      </div>
      {routers === null ? (
        <p class="panel-body faint small">{access.hidden}</p>
      ) : (
        <ol class="chain">
          <ChainLink
            title={access.routersOfIdentity}
            holds={routers.identityCount > 0}
            head={access.routersOf(routers.identityCount)}
          >
            <Policies row={row} policies={routers.identityPolicies ?? []} />
          </ChainLink>
          <ChainLink
            title={access.routersOfService}
            holds={routers.serviceCount > 0}
            head={access.routersOf(routers.serviceCount)}
          >
            <Policies row={row} policies={routers.servicePolicies ?? []} />
          </ChainLink>
          <ChainLink
            title={access.common}
            holds={!isMissing && routers.onlineCount > 0}
            head={access.commonOf(routers.onlineCount, routers.commonCount)}
          >
            <ul class="policies">
              {routers.common.map((router) => (
                <li key={router.id}>
                  <span class="chips">
                    <RouterState row={router} />
                    <RefLink one={router} />
                  </span>
                </li>
              ))}
            </ul>
          </ChainLink>
        </ol>
      )}
    </section>
  )
}
