/* trust.py: how far each expert of a pool is trusted, by AdaHedge; and small systems of equations. */

#ifndef FEEDRANK_HEDGE_H
#define FEEDRANK_HEDGE_H

#define MEMBERS 16 /* experts at most */

/* What the pool of the automatic learner consists of; `count` columns. */
typedef struct {
    double *a, *A, *losses, *w, *weights;
    const double *prior;
    const char *present;
    double doubt, gaps;
    int members, bits;
} Trust;

/* x of A x = b in the place of b, by Cholesky's factors; -1 where A is not positive definite. */
int solve(const double *A, double *x, int n);

/* D and one more, of the losses of this round. */
double gap_of(const Trust *pool, const double *losses);

/* w, and the weights of the experts' log-odds. */
void hedge(Trust *pool);

#endif
