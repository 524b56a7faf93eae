// Generated from the OpenAPI documents of a controller by `make console-types`. Do not edit.

export interface AccessExplained {
  readonly identity: AccessExplainedIdentity
  readonly service: AccessExplainedIdentity
  readonly identityState: {
    readonly isDisabled: boolean
    readonly disabledUntil: string | null
    readonly isAdmin: boolean
    readonly canLogIn: boolean
    readonly hasOutstandingEnrollment: boolean
    readonly authPolicy: AccessExplainedIdentity | null
    readonly hasApiSession: boolean
  }
  readonly dial: AccessExplainedDial
  readonly bind: AccessExplainedDial
  readonly routers: {
    readonly identityCount: number
    readonly serviceCount: number
    readonly commonCount: number
    readonly onlineCount: number
    readonly common: readonly {
      readonly entity: string
      readonly id: string
      readonly name: string
      readonly isOnline: boolean
      readonly isVerified: boolean
    }[]
    readonly identityPolicies: readonly AccessExplainedRoutersIdentityPolicies[] | null
    readonly servicePolicies: readonly AccessExplainedRoutersIdentityPolicies[] | null
  } | null
  readonly terminators: {
    readonly totalCount: number
    readonly onlineCount: number
    readonly items: readonly {
      readonly entity: string
      readonly id: string
      readonly name: string
      readonly address: string
      readonly binding: string
      readonly router: AccessExplainedIdentity | null
      readonly isOnline: boolean
    }[]
  } | null
  readonly sessions: {
    readonly totalCount: number
    readonly items: readonly {
      readonly id: string
      readonly createdAt: string
      readonly passesForDial: boolean | null
      readonly passesForBind: boolean | null
    }[]
  } | null
  readonly configs:
    | readonly {
        readonly entity: string
        readonly id: string
        readonly name: string
        readonly type: AccessExplainedIdentity | null
        readonly source: 'service' | 'identity'
        readonly notIntercepted?: readonly string[]
      }[]
    | null
  readonly withheld: readonly string[]
}

export interface AccessExplainedDial {
  readonly isGranted: boolean
  readonly isReachable: boolean
  readonly endsAt?: string | null
  readonly policiesCount: number | null
  readonly policies:
    | readonly {
        readonly entity: string
        readonly id: string
        readonly name: string
        readonly semantic: string
        readonly identityRoles?: readonly string[]
        readonly serviceRoles?: readonly string[]
        readonly edgeRouterRoles?: readonly string[]
        readonly checks:
          | readonly {
              readonly entity: string
              readonly id: string
              readonly name: string
              readonly typeId: string
              readonly state: 'passes' | 'fails' | 'unknown'
              readonly passing: number
              readonly failing: number
            }[]
          | null
        readonly checksCount: number | null
      }[]
    | null
  readonly missing: readonly {
    readonly code:
      | 'IDENTITY_DISABLED'
      | 'NO_LOG_IN'
      | 'POLICY_ENDED'
      | 'ROLE_ATTRIBUTE_ENDED'
      | 'NO_POLICY_OF_IDENTITY'
      | 'NO_POLICY_OF_SERVICE'
      | 'NO_SHARED_POLICY'
      | 'POSTURE_FAILS'
      | 'NO_ROUTER_OF_IDENTITY'
      | 'NO_ROUTER_OF_SERVICE'
      | 'NO_COMMON_ROUTER'
      | 'NO_ROUTER_ONLINE'
      | 'NO_EDGE_LISTENER'
      | 'NO_TERMINATOR'
      | 'NO_TERMINATOR_ONLINE'
    readonly message: string
    readonly records: readonly AccessExplainedIdentity[]
  }[]
  readonly nearestPolicy?: {
    readonly entity: string
    readonly id: string
    readonly name: string
    readonly identityLacks: readonly string[]
    readonly serviceLacks: readonly string[]
  } | null
}

export interface AccessExplainedIdentity {
  readonly entity: string
  readonly id: string
  readonly name: string
}

export interface AccessExplainedRoutersIdentityPolicies {
  readonly entity: string
  readonly id: string
  readonly name: string
  readonly semantic: string
  readonly identityRoles?: readonly string[]
  readonly serviceRoles?: readonly string[]
  readonly edgeRouterRoles?: readonly string[]
}

export interface AccessPreviewed {
  readonly counts: {
    readonly dial: AccessPreviewedCountsDial
    readonly bind: AccessPreviewedCountsDial
    readonly router: AccessPreviewedCountsDial | null
    readonly serviceRouter: AccessPreviewedCountsDial | null
  }
  readonly postureChangesCount: number
  readonly postureChanges: readonly {
    readonly policy: AccessPreviewedPostureChangesPolicy
    readonly given: readonly AccessPreviewedPostureChangesPolicy[]
    readonly taken: readonly AccessPreviewedPostureChangesPolicy[]
    readonly written: readonly AccessPreviewedPostureChangesPolicy[]
  }[]
  readonly rows: readonly {
    readonly right: 'dial' | 'bind' | 'router' | 'serviceRouter'
    readonly change: 'given' | 'taken'
    readonly identity: AccessPreviewedPostureChangesPolicy | null
    readonly service: AccessPreviewedPostureChangesPolicy | null
    readonly router: AccessPreviewedPostureChangesPolicy | null
  }[]
  readonly pagination: MetaPagination
  readonly withheld: readonly string[]
}

export interface AccessPreviewedCountsDial {
  readonly given: number
  readonly taken: number
}

export interface AccessPreviewedPostureChangesPolicy {
  readonly entity: string
  readonly id: string
  readonly name: string
  readonly isNew: boolean
}

export interface AuditDetail {
  readonly index: number
  readonly at: string
  readonly actor: AuditDetailActor
  readonly session: string
  readonly address: string
  readonly action: string
  readonly entity: string
  readonly entityId: string
  readonly entityName: string
  readonly exists: boolean
  readonly fields: readonly string[]
  readonly also: readonly string[]
  readonly outcome: string
  readonly reason: string
  readonly changeState: 'KEPT' | 'TOO_LARGE' | 'DROPPED' | 'NONE'
  readonly changes: readonly {
    readonly kind: string
    readonly id: string
    readonly name: string
    readonly before: Readonly<Record<string, unknown>> | null
    readonly after: Readonly<Record<string, unknown>> | null
    readonly isPartial: boolean
  }[]
  readonly omittedChanges: number
}

export interface AuditDetailActor {
  readonly id: string
  readonly name: string
}

export interface ClusterBackups {
  readonly isScheduled: boolean
  readonly backups: readonly {
    readonly name: string
    readonly takenAtMs: number
  }[]
}

export interface ClusterChangePlan {
  readonly change: {
    readonly verb: 'promote' | 'demote' | 'remove' | 'replace'
    readonly id?: string
    readonly isCompromised?: boolean
    readonly oldId?: string
    readonly newId?: string
  }
  readonly isNeeded: boolean
  readonly votersBefore: readonly string[]
  readonly votersAfter: readonly string[]
  readonly toleranceBefore: number
  readonly toleranceAfter: number
  readonly warnings: readonly string[]
  readonly confirmation: string | null
}

export interface ClusterHistory {
  readonly selfId: string
  readonly periodSeconds: number
  readonly endedAt: string | null
  readonly figures: {
    readonly commitsPerSecond: readonly (number | null)[]
    readonly appliedLag: readonly (number | null)[]
    readonly fsyncP99Ms: readonly (number | null)[]
    readonly leaderChanges: readonly (number | null)[]
    readonly logIns: readonly (number | null)[]
    readonly requestsPerSecond: readonly (number | null)[]
  }
}

export interface ClusterInvitationDetail {
  readonly ticket: string
  readonly id: string
  readonly expiresAtMs: number
}

export interface ClusterStatus {
  readonly clusterId: string
  readonly generation: number
  readonly selfId: string
  readonly leaderId: string | null
  readonly members: readonly {
    readonly id: string
    readonly address: string
    readonly version: string
    readonly role: string
    readonly term: number
    readonly commit: number
    readonly applied: number
    readonly persisted: number
    readonly digestIndex?: number
    readonly digest?: string
    readonly lastContactMs?: number | null
    readonly isFailing?: boolean
    readonly featureLevel?: number
  }[]
  readonly failureTolerance: number
  readonly failureToleranceMax?: number
  readonly nextRisk: string
  readonly featureLevel: number
  readonly nextFeatureLevel?: {
    readonly level: number
    readonly waitsFor: readonly string[]
  }
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

export interface ClusterTicketDetail {
  readonly id: string
  readonly isVoter: boolean
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly usedBy: string | null
}

export interface ConfigTypeDetail {
  readonly createdAt: string
  readonly id: string
  readonly updatedAt: string
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>> | null
  readonly tags: Readonly<Record<string, unknown>>
  readonly target: string
}

export interface ControllerDetail {
  readonly createdAt: string
  readonly id: string
  readonly tags?: Readonly<Record<string, unknown>>
  readonly updatedAt: string
  readonly apiAddresses?: Readonly<
    Record<
      string,
      readonly {
        readonly url?: string
        readonly version?: string
      }[]
    >
  >
  readonly certPem: string
  readonly ctrlAddress?: string
  readonly fingerprint: string
  readonly isOnline: boolean
  readonly isPreferredLeader?: boolean
  readonly lastJoinedAt: string
  readonly name: string
}

export interface ExternalJwtSignerDiscovered {
  readonly issuer: string
  readonly jwksEndpoint: string
  readonly authorizationEndpoint: string | null
  readonly scopes: readonly string[]
  readonly keyIds: readonly string[] | null
  readonly keysFault: string | null
}

export interface ExternalJwtSignerTested {
  readonly logsIn: boolean
  readonly enrolls: boolean
  readonly signer: AuditDetailActor | null
  readonly identity: AuditDetailActor | null
  readonly checks: readonly {
    readonly check:
      | 'form'
      | 'issuer'
      | 'signerEnabled'
      | 'key'
      | 'algorithm'
      | 'signature'
      | 'audience'
      | 'time'
      | 'claim'
      | 'identity'
      | 'policy'
    readonly state: 'passed' | 'failed' | 'unchecked'
    readonly reason: string | null
    readonly message: string | null
    readonly claim: string | null
    readonly found: string | null
    readonly expected: string | null
  }[]
  readonly claimNames: readonly string[]
}

export interface IdentityDetail {
  readonly createdAt: string
  readonly id: string
  readonly updatedAt: string
  readonly appData: Readonly<Record<string, unknown>>
  readonly authPolicy: AccessExplainedIdentity | null
  readonly authPolicyId: string
  readonly authenticators: {
    readonly cert?: {
      readonly fingerprint?: string
      readonly id?: string
    }
    readonly updb?: {
      readonly id?: string
      readonly username?: string
    }
  }
  readonly defaultHostingCost: number
  readonly defaultHostingPrecedence: string
  readonly disabled: boolean
  readonly disabledAt?: string
  readonly disabledUntil?: string
  readonly edgeRouterConnectionStatus: 'online' | 'offline' | 'unknown'
  readonly enrollment: {
    readonly ott?: IdentityDetailEnrollmentOtt
    readonly ottca?: {
      readonly ca?: AccessExplainedIdentity
      readonly caId?: string
      readonly expiresAt?: string
      readonly id?: string
      readonly jwt?: string
      readonly token?: string
    }
    readonly updb?: IdentityDetailEnrollmentOtt
  }
  readonly envInfo: {
    readonly arch?: string
    readonly domain?: string
    readonly hostname?: string
    readonly os?: string
    readonly osRelease?: string
    readonly osVersion?: string
  }
  readonly externalId: string | null
  readonly hasApiSession: boolean
  readonly hasEdgeRouterConnection: boolean
  readonly interfaces:
    | readonly {
        readonly addresses: readonly string[]
        readonly hardwareAddress: string
        readonly index: number
        readonly isBroadcast: boolean
        readonly isLoopback: boolean
        readonly isMulticast: boolean
        readonly isRunning: boolean
        readonly isUp: boolean
        readonly mtu: number
        readonly name: string
      }[]
    | null
  readonly isAdmin: boolean
  readonly isDefaultAdmin: boolean
  readonly isMfaEnabled: boolean
  readonly lastSeenAt: string | null
  readonly name: string
  readonly passwordLock?: {
    readonly lockedAt: string
    readonly lockedUntil: string | null
  }
  readonly permissions: readonly string[] | null
  readonly roleAttributeEndsAt?: string
  readonly roleAttributes: readonly string[]
  readonly roleAttributesExpireAt?: Readonly<Record<string, string>>
  readonly sdkInfo: {
    readonly appId?: string
    readonly appVersion?: string
    readonly branch?: string
    readonly revision?: string
    readonly type?: string
    readonly version?: string
  }
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly serviceHostingPrecedences: Readonly<Record<string, 'default' | 'required' | 'failed'>>
  readonly tags: Readonly<Record<string, unknown>>
  readonly type: AccessExplainedIdentity
  readonly typeId: string
}

export interface IdentityDetailEnrollmentOtt {
  readonly expiresAt?: string
  readonly id?: string
  readonly jwt?: string
  readonly token?: string
}

export interface Meta {
  readonly apiEnrollmentVersion: string
  readonly apiVersion: string
  readonly detachedFrom?: readonly {
    readonly entity: string
    readonly field: string
    readonly ids: readonly string[]
    readonly totalCount: number
  }[]
  readonly filterableFields?: readonly string[]
  readonly ignoredFields?: readonly string[]
  readonly warnings?: readonly string[]
  readonly pagination?: MetaPagination
}

export interface MetaPagination {
  readonly limit: number
  readonly offset: number
  readonly totalCount: number
}

export interface TrafficDetail {
  readonly entity: string
  readonly id: string
  readonly name: string
  readonly hour: TrafficTopRowsHour
  readonly day: TrafficTopRowsHour
  readonly silentControllers: readonly string[]
}

export interface TrafficTop {
  readonly by: string
  readonly rows: readonly {
    readonly entity: string
    readonly id: string
    readonly name: string
    readonly hour: TrafficTopRowsHour
    readonly day: TrafficTopRowsHour
  }[]
  readonly other: {
    readonly hour: TrafficTopRowsHourTotals
    readonly day: TrafficTopRowsHourTotals
  }
  readonly recordCount: number
  readonly silentControllers: readonly string[]
}

export interface TrafficTopRowsHour {
  readonly periodSeconds: number
  readonly startedAt: string
  readonly rxBytes: readonly number[]
  readonly txBytes: readonly number[]
  readonly circuits: readonly number[]
  readonly dialFailures: readonly number[]
  readonly latencyMs: readonly (number | null)[]
  readonly totals: TrafficTopRowsHourTotals
}

export interface TrafficTopRowsHourTotals {
  readonly rxBytes: number
  readonly txBytes: number
  readonly circuits: number
  readonly dialFailures: number
  readonly latencyMs: number | null
}

/** Bodies of answers, by operation. */
export interface ServedAnswers {
  readonly 'GET /edge/management/v1/access/explain': {
    readonly data: readonly AccessExplained[]
    readonly meta: Meta
  }
  readonly 'POST /edge/management/v1/access/preview': {
    readonly data: AccessPreviewed
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/config-types': {
    readonly data: readonly ConfigTypeDetail[]
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/controllers': {
    readonly data: readonly ControllerDetail[]
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/current-identity': {
    readonly data: IdentityDetail
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/history': {
    readonly data: readonly AuditDetail[]
    readonly meta: Meta
  }
  readonly 'POST /edge/management/v1/jwt-signer-setup/discover': {
    readonly data: ExternalJwtSignerDiscovered
    readonly meta: Meta
  }
  readonly 'POST /edge/management/v1/jwt-signer-setup/test': {
    readonly data: ExternalJwtSignerTested
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/traffic/services': {
    readonly data: TrafficTop
    readonly meta: Meta
  }
  readonly 'GET /edge/management/v1/traffic/services/{id}': {
    readonly data: TrafficDetail
    readonly meta: Meta
  }
  readonly 'GET /fabric/v1/audit': {
    readonly data: readonly AuditDetail[]
    readonly meta: Meta
  }
  readonly 'GET /fabric/v1/cluster/backups': {
    readonly data: ClusterBackups
    readonly meta: Meta
  }
  readonly 'GET /fabric/v1/cluster/history': {
    readonly data: ClusterHistory
    readonly meta: Meta
  }
  readonly 'POST /fabric/v1/cluster/invite': {
    readonly data: ClusterInvitationDetail
    readonly meta: Meta
  }
  readonly 'GET /fabric/v1/cluster/list-tickets': {
    readonly data: readonly ClusterTicketDetail[]
    readonly meta: Meta
  }
  readonly 'POST /fabric/v1/cluster/plan': {
    readonly data: ClusterChangePlan
    readonly meta: Meta
  }
  readonly 'GET /fabric/v1/cluster/status': {
    readonly data: ClusterStatus
    readonly meta: Meta
  }
}
