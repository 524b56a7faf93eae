export const previewedActions = ['create', 'replace', 'patch', 'delete'] as const
export type PreviewedAction = (typeof previewedActions)[number]

/** Kinds whose records affect access, with the actions that a preview supports. */
export const previewedActionsByKind = {
  identity: previewedActions,
  service: previewedActions,
  servicePolicy: previewedActions,
  edgeRouterPolicy: previewedActions,
  serviceEdgeRouterPolicy: previewedActions,
  postureCheck: previewedActions,
  // `create` is missing: a new edge router must enroll, which a preview does not cover.
  edgeRouter: ['replace', 'patch', 'delete'],
} as const satisfies Readonly<Record<string, readonly PreviewedAction[]>>
export const previewedKinds = Object.keys(previewedActionsByKind) as readonly PreviewedKind[]
export type PreviewedKind = keyof typeof previewedActionsByKind
