/** Color of a badge, by what it means for an operator. */
export type BadgeTone = 'good' | 'warn' | 'bad' | 'accent' | 'plain'
