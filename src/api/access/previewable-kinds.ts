export const previewableActions = ['create', 'replace', 'patch', 'delete'] as const
export type PreviewableAction = (typeof previewableActions)[number]

/** Kinds whose records affect access, with the actions that a preview supports. */
export const previewableActionsByKind = {
  identity: previewableActions,
  service: previewableActions,
  servicePolicy: previewableActions,
  edgeRouterPolicy: previewableActions,
  serviceEdgeRouterPolicy: previewableActions,
  postureCheck: previewableActions,
  // `create` is missing: a new edge router must enroll, which a preview does not cover.
  edgeRouter: ['replace', 'patch', 'delete'],
} as const satisfies Readonly<Record<string, readonly PreviewableAction[]>>
export const previewableKinds = Object.keys(previewableActionsByKind) as readonly PreviewableKind[]
export type PreviewableKind = keyof typeof previewableActionsByKind
