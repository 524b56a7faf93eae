import type { RequestContext } from '../http/request-context.ts'
import { OIDC_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { Problem } from '../../lib/problems.ts'
import type { Operation } from '../http/operation.ts'
import type { ApiVersionsKey } from '../api-deps.ts'
import type { PkiControl } from '../cluster/pki-control.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import { type RedirectTargets, redirectTargets } from '../../auth/oidc/redirect-targets.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { DeviceFlow } from '../../auth/oidc/device-flow.ts'
import type { LogInFlow } from '../../auth/oidc/log-in-flow.ts'
import type { DeviceLogIns } from '../../auth/oidc/device-log-ins.ts'
import type { FormerMemberTokens } from '../../auth/sessions/former-member-tokens.ts'
import type { OidcTokens } from '../../auth/sessions/oidc-tokens.ts'
import type { SecondFactors } from '../../auth/factors/second-factors.ts'
import { authorizationOperations } from './authorize.ts'
import { deviceOperations } from './device.ts'
import { discoveryOperations } from './discovery.ts'
import { Issuers } from './issuers.ts'
import { totpEnrollmentOperations } from './totp-enrollment.ts'
import { LogInStepHandlers, logInStepOperations } from './log-in-steps.ts'
import { tokenOperations } from './tokens.ts'

interface OidcOperationsDeps {
  readonly cluster: Pick<ClusterView, 'selfId'>
  readonly state: StateView
  readonly jwt: JwtSigner
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly pki: PkiControl
  readonly oidcFlow: LogInFlow
  readonly deviceFlow: DeviceFlow
  readonly deviceLogIns: DeviceLogIns
  readonly oidcTokens: OidcTokens
  readonly formerTokens: FormerMemberTokens
  readonly secondFactors: SecondFactors
  readonly posture: PostureService
}

/** Operations of the OpenID provider; each controller that serves them is an OpenID provider. */
export function oidcOperations(deps: OidcOperationsDeps): Operation[] {
  const issuers = new Issuers(deps)
  const isOffered = (): void => {
    if (deps.state.featureLevel >= OIDC_FEATURE_LEVEL) return
    throw new Problem('NOT_FOUND', {
      detail: 'OIDC is served once all controllers know it; upgrade the others',
    })
  }
  const redirectPlaces = (call: RequestContext): RedirectTargets =>
    redirectTargets(deps.state, deps.cluster.selfId, issuers.hosts(call))
  const own = { ...deps, issuers, isOffered, redirectPlaces }
  const logIn = new LogInStepHandlers(own)
  return [
    ...discoveryOperations(own),
    ...authorizationOperations(own),
    ...logInStepOperations(logIn),
    ...totpEnrollmentOperations(own, logIn),
    ...tokenOperations(own),
    ...deviceOperations(own),
  ]
}
